"""A scripted supervisor: the other end of an agent's channel, saying what a test wants it to say."""

import json
import select
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

LENGTHS: Final = struct.Struct(">II")
DEADLINE_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 0.01
QUIET_SECONDS: Final = 0.3
ISOLATION: Final = {"network": "None", "seccomp": True, "landlockABI": 7, "userNamespace": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What an agent sent for a run."""

    files: dict[str, bytes]
    start: dict[str, Any]
    code: bytes
    stdin: bytes


class Peer:
    """One connection to an agent's control socket."""

    def __init__(self, path: Path, *, seconds: float = DEADLINE_SECONDS) -> None:
        deadline = time.monotonic() + seconds
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

    def take_inputs(self) -> Inputs:
        """Take everything a run gets, answering as a supervisor does."""
        files: dict[str, bytes] = {}
        blobs = {"code": b"", "stdin": b""}
        while (frame := self.receive())[0]["type"] == "file":
            files[frame[0]["path"]] = files.get(frame[0]["path"], b"") + frame[1]
        assert frame[0]["type"] == "place", frame
        self.send({"type": "placed"})
        start, words = self.receive()
        assert start["type"] == "start", start
        start |= json.loads(words)
        for kind in blobs:
            last = False
            while not last:
                header, payload = self.receive()
                assert header["type"] == kind, header
                blobs[kind] += payload
                last = header["last"]
        return Inputs(files=files, start=start, **blobs)

    def refuse_inputs(self, message: str) -> None:
        """Say that they could not be written."""
        while self.receive()[0]["type"] != "place":
            pass
        self.send({"type": "placeFailed", "message": message})

    def started(self) -> None:
        """Say that the script's process is there."""
        self.send({"type": "started", "isolation": ISOLATION})

    def output(self, stream: str, data: bytes) -> None:
        """Pass on a piece of a stream."""
        self.send({"type": "output", "stream": stream}, data)

    def artifact(self, path: str, data: bytes) -> None:
        """Pass on a whole small artifact."""
        self.send({"type": "artifact", "path": path, "last": True}, data)

    def exited(self, *, outcome: str = "exited", stdout: int = 0, stderr: int = 0, **more: Any) -> None:
        """Tell the end."""
        counts = {"stdoutBytes": stdout, "stderrBytes": stderr, "runMilliseconds": 5}
        self.send({"type": "exited", "outcome": outcome, "exitCode": 0, **counts, **more})

    def finished(self) -> None:
        """Say that nothing more comes."""
        self.send({"type": "finished"})

    def nothing_more(self) -> bool:
        """Tell whether the agent is silent."""
        return not select.select([self.socket], [], [], QUIET_SECONDS)[0]

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data
