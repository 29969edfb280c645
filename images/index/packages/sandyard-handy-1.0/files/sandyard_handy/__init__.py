"""A package whose wheel also brings a path file, a script and data."""

__version__ = "1.0"
