"""Frames to and from the supervisor over the one Unix connection this agent ever accepts.

The peer must be the runner's user; the socket's name is gone before anything is read. A frame above its
bounds, or one that is no frame, ends the channel. Knows frames, not what they mean.
"""

import asyncio
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sandyard_runtime import wire

PEER_FORMAT: Final = "3i"  # pid, uid, gid


class ChannelError(Exception):
    """The channel ended, or spoke something else."""


class Channel:
    """One connection, framed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> tuple[bytes, bytes]:
        """Return the next frame's header, still raw, and its payload."""
        try:
            lengths = await self._reader.readexactly(wire.LENGTHS.size)
            header, payload = wire.LENGTHS.unpack(lengths)
            if header > wire.HEADER_BYTES or payload > wire.PAYLOAD_BYTES:
                raise ChannelError("a frame above its bounds")
            return await self._reader.readexactly(header), await self._reader.readexactly(payload)
        except (asyncio.IncompleteReadError, OSError) as error:
            raise ChannelError("the channel ended") from error

    async def send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        """Send a frame and wait until the buffer takes more."""
        try:
            self._writer.write(wire.encode(dict(header), payload))
            await self._writer.drain()
        except (wire.FrameError, OSError) as error:
            raise ChannelError(f"the channel did not take a frame: {error}") from error

    def close(self) -> None:
        """End the channel."""
        self._writer.close()


async def accept(path: Path, *, uid: int) -> Channel:
    """Wait for the one connection of user ``uid``."""
    loop = asyncio.get_running_loop()
    with _listen(path) as listener:
        while True:
            connection, _ = await loop.sock_accept(listener)
            if _peer(connection) == uid:
                break
            connection.close()
        path.unlink()  # noqa: ASYNC240 - a memory volume
    reader, writer = await asyncio.open_unix_connection(sock=connection, limit=2 * wire.PAYLOAD_BYTES)
    return Channel(reader, writer)


def _listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)  # noqa: FBT003 - the method's own signature
    listener.bind(str(path))
    path.chmod(0o666)  # the runner is another user
    listener.listen()
    return listener


def _peer(connection: socket.socket) -> int:
    """Return the user at the other end, as this namespace numbers it."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(PEER_FORMAT))
    uid: int = struct.unpack(PEER_FORMAT, raw)[1]
    return uid
