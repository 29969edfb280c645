"""One request to one pod's agent, signed, answered by that very pod or by nobody.

The TLS name is the namespace's, so an answer is believed only when it echoes the pod's uid and the request's
nonce. Every request of ours is idempotent; one that met a connection the agent had just closed is sent again,
once, and so is one signed for a time that the agent's clock does not know.
"""

import secrets
import ssl
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import aiohttp
from pydantic import ValidationError

from sandyard_api import tokens, wire
from sandyard_operator.agents.signer import Signer
from sandyard_operator.decide.pod import PodView
from sandyard_operator.ports import AgentRefusedError, AgentUnreachableError

CONNECT_SECONDS: Final = 2.0  # TCP and TLS to a pod of the same cluster
ANSWER_SECONDS: Final = 10.0  # beyond what the agent was asked to wait
SKEW_SECONDS: Final = 2.0  # less is the way of the answer, not the clock
SKEWS: Final = 4096  # pods whose clock is remembered
CONNECTIONS: Final = 4096  # each waiting task holds one; the pods bound their number
PER_AGENT: Final = 4
KEEPALIVE_SECONDS: Final = 60.0  # below the agent's own 75


class NotListeningError(AgentUnreachableError):
    """Nothing could be connected to: the pod is starting, or gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How agents are reached and told apart."""

    ca_bundle: str
    server_name: Callable[[str], str]  # of a namespace
    port: int


class Exchange:
    """Sends requests to agents."""

    def __init__(self, way: Way, signer: Signer, *, now: Callable[[], float]) -> None:
        self._way = way
        self._signer = signer
        self._now = now
        self._skews: OrderedDict[str, float] = OrderedDict()  # by pod uid: the agent's clock less ours
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=CONNECTIONS,
                limit_per_host=PER_AGENT,
                keepalive_timeout=KEEPALIVE_SECONDS,
                ssl=_tls(way.ca_bundle),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            raise_for_status=False,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def call(self, pod: PodView, request: tokens.Request, *, seconds: float) -> bytes:
        """Return the body of the answer, which may take ``seconds`` and a little more."""
        if not pod.ip:
            raise AgentUnreachableError(f"pod {pod.name} has no address yet")
        skew = self._skews.get(pod.uid, 0.0)
        try:
            return await self._resend_once(pod, request, seconds=seconds)
        except AgentRefusedError as error:
            learned = abs(self._skews.get(pod.uid, 0.0) - skew) >= SKEW_SECONDS
            # The HTTP client repeats a read by itself where its connection was closed under it.
            again = error.code is wire.ErrorCode.REPLAYED or (error.code is wire.ErrorCode.UNAUTHENTICATED and learned)
            if not again:
                raise
        return await self._resend_once(pod, request, seconds=seconds)

    async def _resend_once(self, pod: PodView, request: tokens.Request, *, seconds: float) -> bytes:
        try:
            return await self._send(pod, request, seconds=seconds)
        except _CutError:
            return await self._send(pod, request, seconds=seconds)

    async def _send(self, pod: PodView, request: tokens.Request, *, seconds: float) -> bytes:
        nonce = secrets.token_hex(16)
        now = self._now() + self._skews.get(pod.uid, 0.0)
        token, certificate = self._signer.sign(request, token_id=secrets.token_hex(16), now=now)
        host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
        try:
            async with self._session.request(
                request.method,
                f"https://{host}:{self._way.port}{request.path}",
                data=request.body or None,
                headers={
                    "Authorization": f"Bearer {token}",
                    wire.HEADER_CERTIFICATE: certificate,
                    wire.HEADER_NONCE: nonce,
                },
                server_hostname=self._way.server_name(pod.namespace),
                timeout=aiohttp.ClientTimeout(
                    total=seconds + ANSWER_SECONDS, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS
                ),
                allow_redirects=False,
            ) as answer:
                self._check(pod, nonce, answer)
                body = await answer.read()
        except aiohttp.ClientSSLError as error:
            raise AgentUnreachableError(f"somebody else answers for pod {pod.name}: {error}") from error
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotListeningError(f"the agent of pod {pod.name} does not listen: {error}") from error
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            raise _CutError(f"the agent of pod {pod.name} closed the connection") from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise AgentUnreachableError(
                f"no answer from the agent of pod {pod.name}: {type(error).__name__}"
            ) from error
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise _refusal(pod, answer.status, body)
        return body

    def _check(self, pod: PodView, nonce: str, answer: aiohttp.ClientResponse) -> None:
        """Believe the answer only if it is this pod's, to this request, and of a size we expect."""
        headers = answer.headers
        if headers.get(wire.HEADER_POD_UID) != pod.uid or headers.get(wire.HEADER_NONCE) != nonce:
            answer.close()
            raise AgentUnreachableError(f"{pod.ip} answered, but not as pod {pod.name}")
        if answer.content_length is None or answer.content_length > wire.MAX_JSON_BYTES:
            answer.close()
            raise AgentUnreachableError(f"the agent of pod {pod.name} answers with too much")
        self._learn_skew(pod.uid, headers.get(wire.HEADER_TIME, ""))

    def _learn_skew(self, uid: str, text: str) -> None:
        try:
            skew = float(text) - self._now()
        except ValueError:
            return
        if abs(skew) < SKEW_SECONDS:
            self._skews.pop(uid, None)
            return
        self._skews[uid] = skew
        if len(self._skews) > SKEWS:
            self._skews.popitem(last=False)


class _CutError(AgentUnreachableError):
    """The connection ended before an answer."""


def _refusal(pod: PodView, status: int, body: bytes) -> AgentRefusedError | AgentUnreachableError:
    try:
        reply = wire.ErrorReply.model_validate_json(body)
    except ValidationError:
        return AgentUnreachableError(f"the agent of pod {pod.name} answered {status} and no reason")
    return AgentRefusedError(reply.code, reply.message)


def _tls(ca_bundle: str) -> ssl.SSLContext:
    """Trust our own authority and nothing else; both ends speak TLS 1.3."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=ca_bundle)
    return context
