"""The keyed queue: each key is worked on by one worker at a time, however often it is asked for.

A key asked for while it is worked on comes again after that. A key may have one due time; it and failures
end in the same place as an event does. Keys are served in the order in which they were first asked for.
"""

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from sandyard_operator.drive.backoff import backoff_seconds
from sandyard_operator.drive.due import DueTimes

K = TypeVar("K", bound=Hashable)


class KeyedQueue(Generic[K]):
    """Pending keys, keys in work, due times and failures."""

    def __init__(self, *, monotonic: Callable[[], float], jitter: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._jitter = jitter
        self._pending: dict[K, float] = {}  # in order; since when
        self._active: dict[K, float] = {}  # since when
        self._again: set[K] = set()
        self._due: DueTimes[K] = DueTimes()
        self._failures: dict[K, int] = {}
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._quiet = asyncio.Event()
        self._quiet.set()

    def __len__(self) -> int:
        return len(self._pending) + len(self._again)

    def add(self, key: K) -> None:
        """Ask for the key now."""
        if key in self._active:
            self._again.add(key)
        elif key not in self._pending:
            self._pending[key] = self._monotonic()
            self._wake.set()

    def add_at(self, key: K, at: float) -> None:
        """Ask for the key at a monotonic time, in place of any earlier due time."""
        self._due.set(key, at)
        self._arm()

    def add_after_failure(self, key: K, *, at_least: float = 0.0, at_most: float | None = None) -> None:
        """Ask for the key after its backoff, or earlier where something else is due."""
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        delay = max(at_least, backoff_seconds(failures, jitter=self._jitter()))
        if at_most is not None:
            delay = min(delay, at_most)
        self.add_at(key, self._monotonic() + delay)

    def succeeded(self, key: K) -> None:
        """Let the key's next failure start from the shortest backoff."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Return how often the key failed in a row."""
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Drop everything about the key but the work that is under way."""
        self._pending.pop(key, None)
        self._again.discard(key)
        self._failures.pop(key, None)
        self._due.drop(key)

    async def get(self) -> K:
        """Wait for a key and take it; the caller ends with ``done``."""
        while not self._pending:
            self._wake.clear()
            await self._wake.wait()
        key = next(iter(self._pending))
        del self._pending[key]
        self._due.drop(key)
        self._active[key] = self._monotonic()
        self._quiet.clear()
        return key

    def done(self, key: K) -> None:
        """End the work on a key taken by ``get``."""
        self._active.pop(key, None)
        if not self._active:
            self._quiet.set()
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    async def quiet(self) -> None:
        """Wait until no key is worked on."""
        await self._quiet.wait()

    def oldest_seconds(self) -> float:
        """Return how long the first pending key has been waiting for a worker."""
        first = next(iter(self._pending.values()), None)
        return 0.0 if first is None else self._monotonic() - first

    def longest_work_seconds(self) -> float:
        """Return for how long the key has been worked on that was taken first."""
        first = next(iter(self._active.values()), None)
        return 0.0 if first is None else self._monotonic() - first

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = self._due.next()
        if at is not None:
            delay = max(0.0, at - self._monotonic())
            self._timer = asyncio.get_running_loop().call_later(delay, self._release)

    def _release(self) -> None:
        for key in self._due.pop(self._monotonic()):
            self.add(key)
        self._arm()
