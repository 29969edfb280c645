"""Facts for the probes: does the loop turn, do keys move, is the sweep on time.

A process whose event loop answers may still be stuck; these facts tell. Judged here, served by the edge
room.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

LAG_SECONDS: Final = 5.0  # the loop was blocked: something synchronous is running in it
STUCK_SECONDS: Final = 60.0  # a key waits for a worker and none comes
HANGING_SECONDS: Final = 300.0  # a worker does not come back: every call of the ports ends much earlier
BEAT_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A snapshot; ``ailments`` is empty when all is well."""

    loop_lag_seconds: float
    oldest_key_seconds: float
    longest_work_seconds: float
    sweep_overdue_seconds: float

    @property
    def ailments(self) -> tuple[str, ...]:
        """Say what is wrong, one sentence each."""
        found = []
        if self.loop_lag_seconds > LAG_SECONDS:
            found.append(f"the event loop was blocked for {self.loop_lag_seconds:.1f} s")
        if self.oldest_key_seconds > STUCK_SECONDS:
            found.append(f"a key has been waiting for a worker for {self.oldest_key_seconds:.0f} s")
        if self.longest_work_seconds > HANGING_SECONDS:
            found.append(f"a key has been worked on for {self.longest_work_seconds:.0f} s")
        if self.sweep_overdue_seconds > 0:
            found.append(f"the full list is overdue by {self.sweep_overdue_seconds:.0f} s")
        return tuple(found)


class LoopLag:
    """Measures by how much a one-second beat came late."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._expected = monotonic() + BEAT_SECONDS
        self._last = 0.0

    @property
    def seconds(self) -> float:
        """Return the lag of the last beat, or of the one that has not come yet."""
        return max(self._last, self._monotonic() - self._expected, 0.0)

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            self._expected = self._monotonic() + BEAT_SECONDS
            await asyncio.sleep(BEAT_SECONDS)
            self._last = self._monotonic() - self._expected
