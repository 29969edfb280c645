"""Time as the operator tells it: wall time that never jumps.

Durations in a process come from the monotonic clock. Wall time starts at the system's and follows it
slowly, so a clock set an hour forward or back expires nothing at once, and after some hours the two agree
again.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic, time
from typing import Final

SLEW: Final = 0.1  # a second of correction takes ten: never backwards, never a leap


class SteadyClock:
    """Wall time for stamps, monotonic time for waiting."""

    def __init__(self, *, wall: Callable[[], float] = time, monotonic: Callable[[], float] = monotonic) -> None:
        self._wall = wall
        self.monotonic = monotonic
        self._last = monotonic()
        self._steady = wall()

    def now(self) -> datetime:
        """Return the time, never before what was returned earlier."""
        passed = self.monotonic() - self._last
        self._last += passed
        self._steady += passed
        correction = self._wall() - self._steady
        self._steady += max(-SLEW * passed, min(SLEW * passed, correction))
        return datetime.fromtimestamp(self._steady, tz=UTC)
