"""When keys are due: a heap with one time per key, replaced or dropped in O(log n) amortised."""

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class DueTimes(Generic[K]):
    """At most one due time per key; entries that were replaced die when they surface."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._live: dict[K, int] = {}
        self._serial = 0

    def __len__(self) -> int:
        return len(self._live)

    def set(self, key: K, at: float) -> None:
        """Make ``key`` due at ``at``, whatever was set before."""
        self._serial += 1
        self._live[key] = self._serial
        heapq.heappush(self._heap, (at, self._serial, key))

    def drop(self, key: K) -> None:
        """Forget the key's due time."""
        self._live.pop(key, None)

    def next(self) -> float | None:
        """Return the earliest due time."""
        while self._heap and self._live.get(self._heap[0][2]) != self._heap[0][1]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> Iterator[K]:
        """Yield and forget the keys due by ``now``, the earliest first."""
        while (at := self.next()) is not None and at <= now:
            key = heapq.heappop(self._heap)[2]
            del self._live[key]
            yield key
