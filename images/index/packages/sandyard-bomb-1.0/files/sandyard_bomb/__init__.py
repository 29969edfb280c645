"""A test package."""

__version__ = "1.0"
