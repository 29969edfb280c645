"""Where a class's package index listens."""

from typing import Final
from urllib.parse import urlsplit

PORTS: Final = {"http": 80, "https": 443}


def address_of(url: str) -> tuple[str, int]:
    """Return host and port of an index's URL."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or PORTS.get(parts.scheme, 443)
