"""How long a key waits after a failure: doubling from 0.2 s to a minute, with jitter that is passed in."""

from typing import Final

FIRST_SECONDS: Final = 0.2
LAST_SECONDS: Final = 60.0
DOUBLINGS: Final = 10  # beyond the cap; keeps the power small


def backoff_seconds(failures: int, *, jitter: float) -> float:
    """Return the delay before the next try after ``failures`` in a row; ``jitter`` is in [0, 1)."""
    whole = min(LAST_SECONDS, FIRST_SECONDS * 2.0 ** min(failures - 1, DOUBLINGS))
    return whole * (0.5 + jitter / 2)
