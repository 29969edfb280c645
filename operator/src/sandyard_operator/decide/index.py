"""Where a class's package index listens, and how long a pod may take to reach it."""

from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

CONTROL_TIMES: Final = 20  # a pod that can reach the index needs about as long as the operator did
LEAST_MILLISECONDS: Final = 100
MOST_MILLISECONDS: Final = 2000
PORTS: Final = {"http": 80, "https": 443}


def address_of(url: str) -> tuple[str, int]:
    """Return host and port of an index's URL."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or PORTS.get(parts.scheme, 443)


def probe_milliseconds(control: timedelta) -> int:
    """Return how long the pod's connect may take before it counts as cut, by how long the operator's took."""
    patience = CONTROL_TIMES * round(control / timedelta(milliseconds=1))
    return max(LEAST_MILLISECONDS, min(MOST_MILLISECONDS, patience))
