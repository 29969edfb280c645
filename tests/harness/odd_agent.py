"""An agent that answers as a test tells it to: late, cut, by another name, with another clock. Real TLS and tokens.

Only for what a genuine agent never does; the genuine one is in ``harness.agent``.
"""

import asyncio
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aiohttp import web

from harness.root_keys import NOW
from sandyard_api import tokens, wire
from sandyard_operator.agents.client import AgentClient
from sandyard_operator.agents.signer import Signer
from sandyard_operator.decide.pod import PodPhase, PodView
from sandyard_operator.kube.authority import Authority, agent_name

HOST: Final = "127.0.0.1"
NAMESPACE: Final = "tenant"
POD_UID: Final = "6f1d1a2c-0000-4000-8000-000000000001"
STATUS: Final = wire.AgentStatus(pod_uid=POD_UID, version="1", supervisor=wire.SupervisorPhase.READY)

Behave = Callable[[web.Request, web.Response], Awaitable[web.StreamResponse]]


def pod_view(*, uid: str = POD_UID, ip: str = HOST, namespace: str = NAMESPACE) -> PodView:
    """Return a pod at an address."""
    return PodView(
        namespace=namespace,
        name="pod",
        uid=uid,
        resource_version="1",
        owner_uid="owner",
        attempt=1,
        signed=True,
        created_at=NOW,
        phase=PodPhase.RUNNING,
        deleting=False,
        deletion_by_operator=False,
        network="closed",
        ip=ip,
    )


async def honest(_: web.Request, reply: web.Response) -> web.StreamResponse:
    """Let the answer go as it is."""
    return reply


@dataclass(slots=True)
class OddAgent:
    """Checks tokens as a genuine agent does, then hands its answer to ``behave``."""

    authority: Authority
    behave: Behave = honest
    skew: float = 0.0
    name: str = agent_name(NAMESPACE)
    port: int = 0
    seen: list[str] = field(default_factory=list)  # "METHOD target" of each request that came
    connections: int = 0
    _runner: web.AppRunner | None = None
    _verifier: tokens.Verifier | None = None

    async def start(self, *, port: int = 0) -> None:
        """Listen."""
        self._verifier = tokens.Verifier(self.authority.root_keys)
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, port, ssl_context=self._context(), reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening and close every connection."""
        if self._runner is not None:
            await self._runner.cleanup()

    def _context(self) -> ssl.SSLContext:
        pair = self.authority.issue(self.name, now=NOW.fromtimestamp(time.time(), tz=NOW.tzinfo))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = Path(folder, "crt"), Path(folder, "key")
            certificate.write_bytes(pair.certificate)
            key.write_bytes(pair.key)
            context.load_cert_chain(certificate, key)
        return context

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(f"{request.method} {request.path_qs}")
        clock = time.time() + self.skew
        headers = {
            wire.HEADER_POD_UID: POD_UID,
            wire.HEADER_NONCE: request.headers[wire.HEADER_NONCE],
            wire.HEADER_TIME: f"{clock:.3f}",
        }
        body = await request.read()
        bound = tokens.Request(audience=POD_UID, method=request.method, path=request.path_qs, body=body)
        assert self._verifier is not None
        try:
            self._verifier.verify(
                token=request.headers["Authorization"].removeprefix("Bearer "),
                certificate=request.headers[wire.HEADER_CERTIFICATE],
                request=bound,
                now=clock,
            )
        except tokens.TokenError as error:
            code = wire.ErrorCode.REPLAYED if error.replayed else wire.ErrorCode.UNAUTHENTICATED
            refusal = wire.ErrorReply(code=code, message=str(error))
            return web.Response(status=401, body=refusal.to_json(), headers=headers)
        return await self.behave(request, web.Response(body=STATUS.to_json(), headers=headers))


@asynccontextmanager
async def client_of(agent: OddAgent, asked: list[tuple[str, str]] | None = None) -> AsyncIterator[AgentClient]:
    """Open a client that trusts the agent's authority; ``asked`` gets what its observer hears."""
    heard = [] if asked is None else asked
    async with AgentClient(
        ca_bundle=agent.authority.ca_bundle,
        signer=Signer(agent.authority.root),
        server_name=agent_name,
        now=time.time,
        monotonic=time.monotonic,
        observer=lambda call, error: heard.append((call, error)),
        port=agent.port,
    ) as client:
        yield client
    await asyncio.sleep(0)
