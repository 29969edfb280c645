"""The supervisor's end of the channel to the agent: connect, frames in, frames out without ever blocking a run."""

import os
import selectors
import socket
import time
from collections import deque
from typing import Any, Final

from sandyard_runtime import wire

SOCKET: Final = "/sandyard/control/supervisor.sock"
RETRY_SECONDS: Final = 0.01
RECEIVE_BYTES: Final = 1024 * 1024


class LinkLostError(Exception):
    """The agent is gone, or spoke something else: the pod is over."""


class Link:
    """One connection; what cannot be sent at once waits here, bounded by the run's caps."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._decoder = wire.Decoder()
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
        """Send what waits as far as the socket takes it."""
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
        """Send everything that waits, blocking."""
        self.connection.setblocking(True)  # noqa: FBT003
        try:
            self.flush()
        finally:
            self.connection.setblocking(False)  # noqa: FBT003

    def receive(self) -> list[wire.Frame]:
        """Return the frames that are complete; raises LinkLostError at the end."""
        try:
            data = self.connection.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return []
        except OSError as error:
            raise LinkLostError(str(error)) from error
        if not data:
            raise LinkLostError("the agent closed the channel")
        try:
            return self._decoder.feed(data)
        except wire.FrameError as error:
            raise LinkLostError(str(error)) from error

    def wait(self) -> list[wire.Frame]:
        """Block until a frame is there; sends what waits meanwhile."""
        while True:
            with selectors.DefaultSelector() as selector:
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.wants_to_write else 0)
                selector.register(self.connection, wanted)
                selector.select()
            self.flush()
            if frames := self.receive():
                return frames


def connect(path: str = SOCKET) -> Link:
    """Connect to the agent as soon as it listens."""
    path = os.environ.get("SANDYARD_CONTROL_SOCKET", path)
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError, PermissionError):
            connection.close()
            time.sleep(RETRY_SECONDS)
        else:
            return Link(connection)
