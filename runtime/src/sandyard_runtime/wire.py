"""Frames between the agent and the supervisor over the pod's one Unix connection.

A frame is a 4-byte big-endian header length, a 4-byte payload length, a JSON object with a ``type``, and the
payload. Standard library only: the supervisor runs in the user's interpreter. Here and in its rooms a NamedTuple
stands for a dataclass, whose module would take a quarter of PID 1's start.
"""

import json
import struct
from typing import Any, Final, NamedTuple

HEADER_BYTES: Final = 64 * 1024  # a header above it is no header of ours
PAYLOAD_BYTES: Final = 1024 * 1024
PATH_BYTES: Final = 4096
LENGTHS: Final = struct.Struct(">II")


class FrameError(Exception):
    """What arrived is no frame."""


class Frame(NamedTuple):
    """One message: its header's fields and the bytes behind it."""

    header: dict[str, Any]
    payload: bytes

    @property
    def kind(self) -> str:
        """The header's type."""
        return str(self.header["type"])


def encode(header: dict[str, Any], payload: bytes = b"") -> bytes:
    """Return a frame's bytes; raises FrameError above the bounds."""
    raw = json.dumps(header, separators=(",", ":")).encode()
    if len(raw) > HEADER_BYTES or len(payload) > PAYLOAD_BYTES:
        raise FrameError("a frame above its bounds")
    return LENGTHS.pack(len(raw), len(payload)) + raw + payload


class Decoder:
    """Turns bytes as they arrive into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Take bytes and return the frames they complete; raises FrameError."""
        self._buffer += data
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def _next(self) -> Frame | None:
        if len(self._buffer) < LENGTHS.size:
            return None
        header, payload = LENGTHS.unpack_from(self._buffer)
        if header > HEADER_BYTES or payload > PAYLOAD_BYTES:
            raise FrameError("a frame above its bounds")
        start, end = LENGTHS.size + header, LENGTHS.size + header + payload
        if len(self._buffer) < end:
            return None
        try:
            fields = json.loads(self._buffer[LENGTHS.size : start])
        except (ValueError, RecursionError) as error:
            raise FrameError("a header that is not JSON") from error
        if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
            raise FrameError("a header without a type")
        frame = Frame(fields, bytes(self._buffer[start:end]))
        del self._buffer[:end]
        return frame
