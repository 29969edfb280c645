"""A scripted supervisor: the other end of an agent's channel, saying what a test wants it to say."""

import json
import socket
import struct
import time
from pathlib import Path
from typing import Any, Final, Self

LENGTHS: Final = struct.Struct(">II")
DEADLINE_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 0.01
ISOLATION: Final = {"network": "None", "seccomp": True, "landlockABI": 7, "userNamespace": False}


class Peer:
    """One connection to an agent's control socket."""

    def __init__(self, path: Path) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(DEADLINE_SECONDS)
            try:
                self.socket.connect(str(path))
            except OSError:
                self.socket.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(LOOK_SECONDS)
            else:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ready(self, *, python: str = "3.13.0") -> None:
        """Say what a supervisor says first."""
        self.send({"type": "ready", "python": python, "isolation": ISOLATION})

    def send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        """Send a frame."""
        raw = json.dumps(header).encode()
        self.socket.sendall(LENGTHS.pack(len(raw), len(payload)) + raw + payload)

    def receive(self) -> tuple[dict[str, Any], bytes]:
        """Return the next frame."""
        header, payload = LENGTHS.unpack(self._exactly(LENGTHS.size))
        return json.loads(self._exactly(header)), self._exactly(payload)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data
