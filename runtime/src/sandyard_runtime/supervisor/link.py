"""The supervisor's end of the channel to the agent: connect, frames in, frames out without ever blocking a run."""

import selectors
import signal
import socket
from collections import deque
from typing import Any, Final

from sandyard_runtime import wire

SOCKET: Final = "/sandyard/control/supervisor.sock"
RETRY_SECONDS: Final = 0.005
RECEIVE_BYTES: Final = 1024 * 1024


class LinkLostError(Exception):
    """The agent is gone, or spoke something else: the pod is over."""


class Link:
    """One connection; what cannot be sent at once waits here, bounded by the run's caps."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._decoder = wire.Decoder()
        self._arrived: deque[wire.Frame] = deque()
        self._waiting: deque[memoryview] = deque()
        connection.setblocking(False)  # noqa: FBT003 - the method's own signature

    @property
    def wants_to_write(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._waiting)

    def send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        """Send a frame, now or as soon as the agent reads."""
        self._waiting.append(memoryview(wire.encode(header, payload)))
        self.flush()

    def flush(self) -> None:
        """Send what waits as far as the socket takes it; raises LinkLostError."""
        while self._waiting:
            try:
                sent = self.connection.send(self._waiting[0])
            except BlockingIOError:
                return
            except OSError as error:
                raise LinkLostError(str(error)) from error
            self._waiting[0] = self._waiting[0][sent:]
            if not self._waiting[0]:
                self._waiting.popleft()

    def flush_all(self) -> None:
        """Send everything that waits, however long the agent takes."""
        while self.wants_to_write:
            self._select(selectors.EVENT_WRITE)
            self.flush()

    def receive(self) -> None:
        """Take in what has arrived; raises LinkLostError at the end."""
        try:
            data = self.connection.recv(RECEIVE_BYTES)
            if not data:
                raise LinkLostError("the agent closed the channel")
            self._arrived.extend(self._decoder.feed(data))
        except BlockingIOError:
            return
        except (OSError, wire.FrameError) as error:
            raise LinkLostError(str(error)) from error

    def next(self) -> wire.Frame | None:
        """Return the next frame that has arrived, if any."""
        return self._arrived.popleft() if self._arrived else None

    def wait(self) -> wire.Frame:
        """Return the next frame, however long it takes; sends what waits meanwhile."""
        while True:
            frame = self.next()
            if frame is not None:
                return frame
            self._select(selectors.EVENT_READ | (selectors.EVENT_WRITE if self.wants_to_write else 0))
            self.flush()
            self.receive()

    def _select(self, events: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self.connection, events)
            selector.select()


def connect() -> Link:
    """Connect to the agent as soon as it listens; raises LinkLostError when the pod is told to end before."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(SOCKET)
        except OSError:
            connection.close()
        else:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            return Link(connection)
        if signal.sigtimedwait({signal.SIGTERM}, RETRY_SECONDS) is not None:
            raise LinkLostError("told to end before there was an agent")
