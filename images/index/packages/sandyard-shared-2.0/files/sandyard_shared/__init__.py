"""A test package."""

__version__ = "2.0"
