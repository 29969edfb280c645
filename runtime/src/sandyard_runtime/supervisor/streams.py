"""A run's pipes as PID 1 holds them: input fed, outputs drained and counted, the first bytes kept."""

import os
import socket
from collections.abc import Callable
from typing import Final

CHUNK_BYTES: Final = 64 * 1024  # what a pipe holds


class Pipes:
    """Both ends of everything a run is given; the run's own ends until they are handed over."""

    def __init__(self) -> None:
        stdin, self.stdin = os.pipe()
        self.stdout, stdout = os.pipe()
        self.stderr, stderr = os.pipe()
        self.report, report = os.pipe()
        self.gate, gate = socket.socketpair()
        self.handed_over = [stdin, stdout, stderr, report, gate.detach()]

    def hand_over(self) -> None:
        """Close the run's ends: it has its own copies."""
        for descriptor in self.handed_over:
            os.close(descriptor)
        self.handed_over = []


class Drain:
    """The reading end of one stream: counts all, passes the first ``cap`` bytes on."""

    def __init__(self, descriptor: int, *, cap: int, keep: Callable[[bytes], None]) -> None:
        self.descriptor = descriptor
        self.total = 0
        self._left = cap
        self._keep = keep
        os.set_blocking(descriptor, False)

    def move(self) -> bool:
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

    def finish(self) -> None:
        """Read what is left in the pipe, whose writers are dead, and close it."""
        before = -1
        while before != self.total:
            before = self.total
            self.move()
        os.close(self.descriptor)


class Feed:
    """The writing end of standard input: never blocks, never fails the run."""

    def __init__(self, descriptor: int, data: bytes) -> None:
        self.descriptor = descriptor
        self._data = memoryview(data)
        self._open = True
        os.set_blocking(descriptor, False)

    def move(self) -> bool:
        """Write what the pipe takes; false when there is no more, or nobody reads any more."""
        try:
            self._data = self._data[os.write(self.descriptor, self._data[:CHUNK_BYTES]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        return bool(self._data)

    def finish(self) -> None:
        """Close the pipe: the reader sees the end."""
        if self._open:
            self._open = False
            os.close(self.descriptor)
