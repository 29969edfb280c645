"""A pure package that works."""

__version__ = "1.0"


def greet(name: str) -> str:
    """Return a greeting."""
    return f"hello, {name}"
