"""A run's pipes as PID 1 holds them: input fed, outputs drained and counted, the first bytes kept."""

import os
from collections.abc import Callable
from typing import Final

CHUNK_BYTES: Final = 64 * 1024


class Drain:
    """The reading end of one stream: counts all, passes the first ``cap`` bytes on."""

    def __init__(self, descriptor: int, *, cap: int, keep: Callable[[bytes], None]) -> None:
        self.descriptor = descriptor
        self.total = 0
        self._left = cap
        self._keep = keep
        os.set_blocking(descriptor, False)

    def read(self) -> bool:
        """Read what is there, once; false at the end."""
        try:
            data = os.read(self.descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        self.total += len(data)
        kept = data[: self._left]
        self._left -= len(kept)
        if kept:
            self._keep(kept)
        return True

    def drain(self) -> None:
        """Read what is left in the pipe; its writers are dead."""
        before = -1
        while before != self.total:
            before = self.total
            self.read()

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)


class Feed:
    """The writing end of standard input: never blocks, never fails the run."""

    def __init__(self, descriptor: int, data: bytes) -> None:
        self.descriptor = descriptor
        self.open = True
        self._data = memoryview(data)
        os.set_blocking(descriptor, False)
        if not data:
            self.close()

    def write(self) -> bool:
        """Write what the pipe takes; false when there is no more, or nobody reads any more."""
        try:
            self._data = self._data[os.write(self.descriptor, self._data[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        return bool(self._data)

    def close(self) -> None:
        """Close the pipe: the reader sees the end."""
        if self.open:
            self.open = False
            os.close(self.descriptor)
