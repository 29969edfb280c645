"""HTTP/1.1 over TLS for a handful of trusted callers, in the presence of untrusted ones.

h11 reads the protocol; this module owns sockets, deadlines and caps. A connection that has not proven
itself is the first to go when there are too many, taken from whoever holds most of them, so a flood by the
pod's own script never locks the operator out. Knows nothing of tokens, routes or runs. Standard library and
h11 only.
"""

import asyncio
import ipaddress
import itertools
import logging
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final

import h11

MAX_CONNECTIONS: Final = 128  # a few callers, each with a few; far below the container's open files
BACKLOG: Final = 128
HANDSHAKE_SECONDS: Final = 5.0
SHUTDOWN_SECONDS: Final = 1.0
HEAD_SECONDS: Final = 5.0  # from a request's first chance to its last header
IDLE_SECONDS: Final = 75.0  # between requests of a connection that has proven itself
BODY_SECONDS: Final = 10.0  # for the first byte of body to the last of a small one …
BODY_BYTES_PER_SECOND: Final = 256 * 1024  # … and one second more for each of these
SEND_SECONDS: Final = 20.0  # for one chunk
LINGER_SECONDS: Final = 1.0  # an early answer outlives what the caller still sends
HEAD_BYTES: Final = 16 * 1024
CHUNK_BYTES: Final = 64 * 1024
ACCEPT_PAUSE_SECONDS: Final = 0.05  # after running out of files
SAME_POD: Final = "same pod"


class BodyTooLargeError(Exception):
    """The body is, or says it is, larger than this request may be."""


class DisconnectedError(Exception):
    """The caller went away, stalled, or spoke something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What goes back; a file's bytes follow ``body`` when there is one."""

    status: int
    body: bytes = b""
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None


@dataclass(slots=True, kw_only=True)
class Request:
    """One request; its body stays in the socket until asked for."""

    method: str
    target: str  # path with query, as sent
    headers: Mapping[str, str]  # names in lower case
    connection: "Connection"

    async def chunks(self, *, limit: int) -> AsyncIterator[bytes]:
        """Yield the body; raises BodyTooLargeError before a byte beyond ``limit`` is kept."""
        length = self.headers.get("content-length", "0")
        if int(length) > limit:
            raise BodyTooLargeError
        received = 0
        loop = asyncio.get_running_loop()
        deadline = loop.time() + BODY_SECONDS
        while chunk := await self.connection.receive_body(deadline + received / BODY_BYTES_PER_SECOND):
            received += len(chunk)
            if received > limit:
                raise BodyTooLargeError
            yield chunk

    async def read(self, *, limit: int) -> bytes:
        """Return the whole body."""
        return b"".join([chunk async for chunk in self.chunks(limit=limit)])

    def trust(self) -> None:
        """Note that the caller has proven itself."""
        self.connection.trusted = True


log = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]


class Connection:
    """One caller's connection: requests one after another until either side ends it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.trusted = False
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)

    async def serve(self, handler: Handler) -> None:
        """Answer requests until the connection cannot carry another."""
        protocol = self._protocol
        while True:
            request = await self._next_request()
            if request is None:
                return
            await self._send(await handler(request))
            if protocol.their_state is h11.SEND_BODY:
                protocol.next_event()  # the end of a body nobody asked for, where there was none
            if protocol.our_state is h11.DONE and protocol.their_state is h11.DONE:
                protocol.start_next_cycle()
                continue
            if protocol.their_state is h11.SEND_BODY:
                await self._linger()
            return

    async def receive_body(self, deadline: float) -> bytes:
        """Return the next piece of the body, empty at its end."""
        if self._protocol.they_are_waiting_for_100_continue:
            self._writer.write(self._protocol.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        event = await self._next_event(deadline)
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if isinstance(event, h11.EndOfMessage):
            return b""
        raise DisconnectedError

    async def _next_request(self) -> Request | None:
        loop = asyncio.get_running_loop()
        event = await self._next_event(loop.time() + (IDLE_SECONDS if self.trusted else HEAD_SECONDS))
        if not isinstance(event, h11.Request):
            return None
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
        return Request(
            method=event.method.decode("ascii"),
            target=event.target.decode("latin-1"),
            headers=headers,
            connection=self,
        )

    async def _next_event(self, deadline: float) -> object:
        try:
            async with asyncio.timeout_at(deadline):
                while (event := self._protocol.next_event()) is h11.NEED_DATA:
                    self._protocol.receive_data(await self._reader.read(CHUNK_BYTES))
        except (TimeoutError, OSError) as error:
            raise DisconnectedError from error
        except h11.RemoteProtocolError as error:
            await self._refuse(error.error_status_hint)
            raise DisconnectedError from error
        return event

    async def _refuse(self, status: int) -> None:
        """Answer what is not HTTP, if an answer can still be sent."""
        if self._protocol.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            await self._send(Response(status=status, headers={"connection": "close"}))

    async def _send(self, response: Response) -> None:
        size = len(response.body)
        headers = {"content-type": response.media_type, **response.headers}
        file = None
        if response.file is not None:
            file = response.file.open("rb")
            size += response.file.stat().st_size
        headers["content-length"] = str(size)
        send = self._protocol.send
        head = h11.Response(
            status_code=response.status,
            headers=[(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
            reason=HTTPStatus(response.status).phrase.encode(),
        )
        first = [send(head) or b"", send(h11.Data(data=response.body)) or b""]
        if file is None:
            first.append(send(h11.EndOfMessage()) or b"")
            await self._write(b"".join(first))
            return
        with file:
            await self._write(b"".join(first))
            while chunk := file.read(CHUNK_BYTES):
                await self._write(send(h11.Data(data=chunk)) or b"")
        await self._write(send(h11.EndOfMessage()) or b"")

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self._writer.drain()
        except (TimeoutError, OSError) as error:
            raise DisconnectedError from error

    async def _linger(self) -> None:
        """Read on for a moment, so that closing does not reset the answer away."""
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(LINGER_SECONDS):
                while await self._reader.read(CHUNK_BYTES):
                    pass


@dataclass(slots=True, kw_only=True)
class _Guest:
    origin: str
    task: asyncio.Task[None] | None = None
    connection: Connection | None = None

    @property
    def trusted(self) -> bool:
        return self.connection is not None and self.connection.trusted


class Server:
    """Accepts, caps and closes connections."""

    def __init__(self, listener: socket.socket, *, context: ssl.SSLContext, handler: Handler) -> None:
        self._listener = listener
        self._context = context
        self._handler = handler
        self._guests: dict[int, _Guest] = {}

    async def run(self) -> None:
        """Serve until cancelled."""
        loop = asyncio.get_running_loop()
        for number in itertools.count():
            try:
                sock, address = await loop.sock_accept(self._listener)
            except OSError:
                await asyncio.sleep(ACCEPT_PAUSE_SECONDS)
                continue
            guest = _Guest(origin=_origin(sock, address[0]))
            if not self._make_room(guest):
                sock.close()
                continue
            self._guests[number] = guest
            guest.task = asyncio.create_task(self._serve(sock, number))

    def _make_room(self, newcomer: _Guest) -> bool:
        """Drop the oldest unproven connection of the origin that holds most of them."""
        if len(self._guests) < MAX_CONNECTIONS:
            return True
        unproven = [(number, guest) for number, guest in self._guests.items() if not guest.trusted]
        if not unproven:
            return False
        held = Counter([newcomer.origin, *(guest.origin for _, guest in unproven)])
        worst = max(held, key=held.__getitem__)
        number = next((number for number, guest in unproven if guest.origin == worst), None)
        if number is None:
            return False
        guest = self._guests.pop(number)
        if guest.task is not None:
            guest.task.cancel()
        return True

    async def _serve(self, sock: socket.socket, number: int) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=CHUNK_BYTES, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport: asyncio.BaseTransport | None = None
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                sock,
                ssl=self._context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=SHUTDOWN_SECONDS,
            )
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            connection = Connection(reader, writer)
            if number in self._guests:
                self._guests[number].connection = connection
            await connection.serve(self._handler)
            transport.close()
        except (DisconnectedError, OSError, h11.ProtocolError):
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
        except asyncio.CancelledError:
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
            raise
        except Exception:
            log.exception("a connection failed")
        finally:
            self._guests.pop(number, None)


def listen(port: int) -> socket.socket:
    """Listen on every address of the pod, IPv6 where there is one."""
    try:
        sock = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
    except (OSError, ValueError):
        sock = socket.create_server(("", port), backlog=BACKLOG)
    sock.setblocking(False)  # noqa: FBT003 - the method's own signature
    return sock


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Serve TLS 1.3 and nothing older: both ends are ours."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _origin(sock: socket.socket, peer: str) -> str:
    address = ipaddress.ip_address(peer.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    if (mapped or address).is_loopback or sock.getsockname()[0] == peer:
        return SAME_POD
    return str(mapped or address)
