"""Whether this process may act, and under which epoch.

The Lease's keeper (kube room) calls ``granted`` after each renewal and ``lost`` when it gave the lease up
or could not keep it; everybody else asks. A grant ends by itself: a process that was stopped for a minute
finds its grant expired before its first action. Correctness does not rest on this but on compare-and-swap
writes and the epoch.
"""

import asyncio
from collections.abc import Callable


class Leadership:
    """The grant to act: an epoch and an end on the monotonic clock."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._epoch: int | None = None
        self._until = 0.0
        self._changed = asyncio.Event()

    @property
    def epoch(self) -> int | None:
        """The epoch to act under, or None: then nothing may be done."""
        return self._epoch if self._monotonic() < self._until else None

    def granted(self, *, epoch: int, until: float) -> None:
        """Act under ``epoch`` until ``until`` (monotonic seconds)."""
        gained = self.epoch != epoch
        self._epoch, self._until = epoch, until
        if gained:
            self._changed.set()

    def lost(self) -> None:
        """Stop acting at once."""
        self._epoch = None
        self._changed.set()

    async def changed(self) -> int | None:
        """Wait for the next gain or loss; return the epoch then."""
        await self._changed.wait()
        self._changed.clear()
        return self.epoch
