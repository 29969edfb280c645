"""A proxy in front of a real API server that cuts, delays and refuses chosen requests, before or after they arrive.

It runs in the test's own loop, speaks plain HTTP to the client under test and is the server's administrator. What a
request meets is said beforehand, one fault for each; without one it passes.
"""

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from sandyard_operator.kube.access import Access

HOST: Final = "127.0.0.1"
SHUTDOWN_SECONDS: Final = 1.0
CLOSING_TURNS: Final = 10  # of the loop, in which closed and aborted transports let go of their sockets
DROPPED: Final = ("transfer-encoding", "content-encoding", "content-length", "connection")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to one request."""

    arrives: bool  # the API server sees it, whatever the client is told
    status: int = 0  # the answer; 0: the connection is cut
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    release: asyncio.Event | None = None  # it is held until this is set


CUT: Final = Fault(arrives=False)
CUT_AFTER_COMMIT: Final = Fault(arrives=True)


def answer(
    status: HTTPStatus, reason: str = "", *, arrives: bool = False, headers: dict[str, str] | None = None
) -> Fault:
    """Return the fault of an answer that is not the server's own."""
    body = {"kind": "Status", "status": "Failure", "reason": reason, "message": f"made up {int(status)}"}
    return Fault(arrives=arrives, status=status, body=body if reason else {}, headers=headers or {})


class FaultyApi:
    """The proxy: ``faults`` are met in order by the requests that ``matches`` picks."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._server: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None
        self._faults: deque[tuple[Callable[[str, str], bool], Fault]] = deque()
        self._streams: dict[asyncio.Transport, aiohttp.ClientResponse] = {}
        self.port = 0
        self.seen: Counter[str] = Counter()  # "VERB path" of every request, faulty or not

    @property
    def access(self) -> Access:
        """Return the way through the proxy."""
        return Access(Configuration(host=f"http://{HOST}:{self.port}"))

    @property
    def writes(self) -> int:
        """Return how many requests were not reads."""
        return sum(count for what, count in self.seen.items() if not what.startswith("GET"))

    @property
    def streams(self) -> int:
        """Return how many watches are open."""
        return len(self._streams)

    def next(self, fault: Fault, *, verb: str = "", path: str = "") -> None:
        """Have the next request whose verb and path contain these meet a fault."""
        self._faults.append((lambda method, target: verb in method and path in target, fault))

    def cut_streams(self) -> None:
        """End all watches at once, without a word."""
        for transport, reply in tuple(self._streams.items()):
            transport.abort()
            _abort(reply)

    async def start(self) -> None:
        """Listen on a free port."""
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self._access.ssl_context()))
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{rest:.*}", self._pass)
        self._server = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await self._server.setup()
        await web.TCPSite(self._server, HOST, 0).start()
        self.port = self._server.addresses[0][1]

    async def stop(self) -> None:
        """Close everything."""
        self.cut_streams()
        if self._server is not None:
            await self._server.cleanup()
        if self._session is not None:
            await self._session.close()
        for _ in range(CLOSING_TURNS):
            await asyncio.sleep(0)

    def _fault_for(self, method: str, target: str) -> Fault | None:
        for index, (matches, fault) in enumerate(self._faults):
            if matches(method, target):
                del self._faults[index]
                return fault
        return None

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        self.seen[f"{request.method} {request.path}"] += 1
        fault = self._fault_for(request.method, request.path_qs)
        if fault is not None and fault.release is not None:
            await fault.release.wait()
        if fault is not None and not fault.arrives:
            return self._spoil(request, fault)
        body = await request.read()
        headers = {"Authorization": f"Bearer {await self._access.token()}"}
        if "Content-Type" in request.headers:
            headers["Content-Type"] = request.headers["Content-Type"]
        assert self._session is not None
        url = self._access.server + request.path_qs
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.request(
            request.method, url, data=body or None, headers=headers, timeout=timeout
        ) as reply:
            if fault is not None:
                await reply.read()
                return self._spoil(request, fault)
            if "watch" in request.query:
                return await self._stream(request, reply)
            kept = {k: v for k, v in reply.headers.items() if k.lower() not in DROPPED}
            return web.Response(status=reply.status, body=await reply.read(), headers=kept)

    def _spoil(self, request: web.Request, fault: Fault) -> web.Response:
        if not fault.status:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return web.Response(status=fault.status, body=json.dumps(fault.body).encode(), headers=fault.headers)

    async def _stream(self, request: web.Request, reply: aiohttp.ClientResponse) -> web.StreamResponse:
        out = web.StreamResponse(status=reply.status, headers={"Content-Type": "application/json"})
        transport = request.transport
        if not isinstance(transport, asyncio.Transport) or transport.is_closing():
            return out
        await out.prepare(request)
        self._streams[transport] = reply
        try:
            async for chunk in reply.content.iter_any():
                await out.write(chunk)
        except aiohttp.ClientError:
            return out  # cut
        finally:
            del self._streams[transport]
            _abort(reply)
        return out


def _abort(reply: aiohttp.ClientResponse) -> None:
    """Let go of a stream without a farewell, which would outlive the test's loop."""
    if reply.connection is not None and reply.connection.transport is not None:
        reply.connection.transport.abort()


@asynccontextmanager
async def faulty(access: Access) -> AsyncIterator[FaultyApi]:
    """Run a proxy."""
    proxy = FaultyApi(access)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
