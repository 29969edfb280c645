"""The client of agents against one that misbehaves: who is believed, what is sent again, what is bounded."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from aiohttp import web

from harness.odd_agent import HOST, POD_UID, OddAgent, client_of, pod_view
from sandyard_api import tokens, wire
from sandyard_operator.agents.signer import KEPT, PERIOD_SECONDS, Signer
from sandyard_operator.kube.authority import Authority, generate
from sandyard_operator.ports import AgentRefusedError, AgentUnreachableError

HOUR = 3600.0
START = wire.StartRequest(epoch=1, input_digest="d", run_timeout_seconds=1)


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Make keys."""
    return Authority.read(generate(now=datetime.now(UTC)))


@pytest.fixture
async def agent(authority: Authority) -> AsyncIterator[OddAgent]:
    """Start an agent."""
    found = OddAgent(authority)
    await found.start()
    yield found
    await found.stop()


async def test_honest_answer_is_believed(agent: OddAgent) -> None:
    asked: list[tuple[str, str]] = []
    async with client_of(agent, asked) as client:
        assert (await client.status(pod_view(), wait=1)).pod_uid == POD_UID
    assert asked == [("GET status", "")]


@pytest.mark.parametrize("skew", [0.0, 30.0, -30.0, HOUR, -HOUR, 40 * HOUR])
async def test_clock_of_the_node_is_followed(agent: OddAgent, skew: float) -> None:
    agent.skew = skew
    async with client_of(agent) as client:
        await client.status(pod_view(), wait=0)
        first = len(agent.seen)
        await client.status(pod_view(), wait=0)
    assert first <= 2, "signed anew once at most"
    assert len(agent.seen) == first + 1, "then its clock is known"


async def test_clock_that_jumps_is_followed_again(agent: OddAgent) -> None:
    async with client_of(agent) as client:
        await client.status(pod_view(), wait=0)
        agent.skew = HOUR
        await client.status(pod_view(), wait=0)
        agent.skew = 0
        await client.status(pod_view(), wait=0)


async def test_agent_that_never_believes_is_asked_once(agent: OddAgent) -> None:
    agent._verifier.__init__(())  # type: ignore[misc]  # noqa: SLF001 - it trusts no root
    async with client_of(agent) as client:
        with pytest.raises(AgentRefusedError) as caught:
            await client.status(pod_view(), wait=0)
    assert caught.value.code is wire.ErrorCode.UNAUTHENTICATED
    assert len(agent.seen) == 1


async def _other_uid(_: web.Request, reply: web.Response) -> web.StreamResponse:
    reply.headers[wire.HEADER_POD_UID] = "another"
    return reply


async def _other_nonce(_: web.Request, reply: web.Response) -> web.StreamResponse:
    reply.headers[wire.HEADER_NONCE] = "of-yesterday"
    return reply


async def _no_echo(_: web.Request, reply: web.Response) -> web.StreamResponse:
    del reply.headers[wire.HEADER_NONCE]
    return reply


async def _not_json(_: web.Request, reply: web.Response) -> web.StreamResponse:
    reply.body = b"<html>"
    return reply


async def _other_message(_: web.Request, reply: web.Response) -> web.StreamResponse:
    reply.body = b"{}"
    return reply


async def _too_much(_: web.Request, reply: web.Response) -> web.StreamResponse:
    reply.body = b" " * (wire.MAX_JSON_BYTES + 1)
    return reply


async def _of_unknown_length(request: web.Request, reply: web.Response) -> web.StreamResponse:
    stream = web.StreamResponse(headers=reply.headers)
    await stream.prepare(request)
    for _ in range(4096):
        await stream.write(b" " * 4096)
    return stream


async def _redirect(_: web.Request, reply: web.Response) -> web.StreamResponse:
    return web.Response(status=302, headers={**reply.headers, "Location": "https://192.0.2.1/"})


async def _error_without_reason(_: web.Request, reply: web.Response) -> web.StreamResponse:
    return web.Response(status=500, body=b"oops", headers=reply.headers)


@pytest.mark.parametrize(
    "behave",
    [
        _other_uid,
        _other_nonce,
        _no_echo,
        _not_json,
        _other_message,
        _too_much,
        _of_unknown_length,
        _redirect,
        _error_without_reason,
    ],
)
async def test_odd_answer_is_no_answer(agent: OddAgent, behave: object) -> None:
    agent.behave = behave  # type: ignore[assignment]
    asked: list[tuple[str, str]] = []
    async with client_of(agent, asked) as client:
        with pytest.raises(AgentUnreachableError):
            await client.status(pod_view(), wait=0)
    assert asked == [("GET status", "AgentUnreachableError")]


async def test_refusal_keeps_its_code(agent: OddAgent) -> None:
    async def refuse(_: web.Request, reply: web.Response) -> web.StreamResponse:
        body = wire.ErrorReply(code=wire.ErrorCode.STALE_EPOCH, message="epoch 7 spoke").to_json()
        return web.Response(status=409, body=body, headers=reply.headers)

    agent.behave = refuse
    async with client_of(agent) as client:
        with pytest.raises(AgentRefusedError, match="epoch 7 spoke") as caught:
            await client.start(pod_view(), "run", START)
    assert caught.value.code is wire.ErrorCode.STALE_EPOCH


async def test_key_of_another_namespace_is_not_believed(authority: Authority) -> None:
    """Who can read a namespace's Secret can pose as an agent there, and nowhere else."""
    impostor = OddAgent(authority, name="agent.other.sandyard.internal")
    await impostor.start()
    async with client_of(impostor) as client:
        with pytest.raises(AgentUnreachableError, match="somebody else"):
            await client.status(pod_view(), wait=0)
    assert impostor.seen == [], "not even the token was shown"
    await impostor.stop()


async def test_key_of_another_authority_is_not_believed(agent: OddAgent) -> None:
    stranger = OddAgent(Authority.read(generate(now=datetime.now(UTC))))
    stranger.port = agent.port
    async with client_of(stranger) as client:
        with pytest.raises(AgentUnreachableError, match="somebody else"):
            await client.status(pod_view(), wait=0)
    assert agent.seen == []


async def test_connection_that_was_just_closed_costs_nothing(agent: OddAgent) -> None:
    cut = [True]

    async def behave(request: web.Request, reply: web.Response) -> web.StreamResponse:
        if cut.pop() if cut else False:
            assert request.transport is not None
            request.transport.abort()
        return reply

    agent.behave = behave
    async with client_of(agent) as client:
        await client.status(pod_view(), wait=0)
    assert len(agent.seen) <= 3, "aiohttp repeats a read with the same token, which is refused, and then we do"


async def test_agent_that_always_cuts_is_unreachable(agent: OddAgent) -> None:
    async def behave(request: web.Request, reply: web.Response) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return reply

    agent.behave = behave
    async with client_of(agent) as client:
        with pytest.raises(AgentUnreachableError):
            await client.start(pod_view(), "run", START)
    assert len(agent.seen) == 2, "once more, not for ever"


async def test_status_waits_for_a_pod_that_is_starting(authority: Authority) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
    agent = OddAgent(authority, port=port)
    async with client_of(agent) as client:
        waiting = asyncio.create_task(client.status(pod_view(), wait=20))
        await asyncio.sleep(0.1)  # the port is closed: it is refused some times meanwhile
        assert not waiting.done()
        began = time.monotonic()
        await agent.start(port=port)
        assert (await waiting).pod_uid == POD_UID
        assert time.monotonic() - began < 1
    await agent.stop()


async def test_pod_that_never_listens_is_given_up_in_time(authority: Authority) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
    async with client_of(OddAgent(authority, port=port)) as client:
        began = time.monotonic()
        with pytest.raises(AgentUnreachableError, match="does not listen"):
            await client.status(pod_view(), wait=0.3)
        assert time.monotonic() - began < 2


async def test_pod_without_an_address_is_not_waited_for(agent: OddAgent) -> None:
    """The address comes with another view of the pod: this one would never do."""
    async with client_of(agent) as client:
        async with asyncio.timeout(1):
            with pytest.raises(AgentUnreachableError, match="no address"):
                await client.status(pod_view(ip=""), wait=20)


async def test_agents_words_for_each_call(agent: OddAgent) -> None:
    run = wire.RunStatus(run_id="r1", phase=wire.RunPhase.ACCEPTED)
    asked: list[tuple[str, str]] = []

    async def behave(_: web.Request, reply: web.Response) -> web.StreamResponse:
        reply.body = run.to_json()
        return reply

    agent.behave = behave
    async with client_of(agent, asked) as client:
        await client.start(pod_view(), "r1", START)
        await client.run_status(pod_view(), "r1", wait=0)
        await client.cancel(pod_view(), "r1")
        await client.revoke(pod_view(), "r1")
        await client.acknowledge(pod_view(), "r1")
    assert agent.seen == [
        "POST /v1/runs/r1",
        "GET /v1/runs/r1?wait=0.000",
        "POST /v1/runs/r1/cancel",
        "POST /v1/runs/r1/revoke",
        "POST /v1/runs/r1/acknowledge",
    ]
    assert {call for call, _ in asked} == {
        "POST runs",
        "GET runs",
        "POST runs/cancel",
        "POST runs/revoke",
        "POST runs/acknowledge",
    }, "no id becomes a label"


def test_signing_keys_change_and_are_few(authority: Authority) -> None:
    signer = Signer(authority.root)
    request = tokens.Request(audience="u", method="GET", path="/")
    certificates = [signer.sign(request, token_id=str(n), now=n * PERIOD_SECONDS + 1.0)[1] for n in range(2 * KEPT)]
    assert len(set(certificates)) == 2 * KEPT
    assert len(signer._keys) == KEPT  # noqa: SLF001 - its memory is bounded
    verifier = tokens.Verifier(authority.root_keys)
    at_the_end = 2 * KEPT * PERIOD_SECONDS - 1.0
    token, certificate = signer.sign(request, token_id="last", now=at_the_end)
    assert certificate == certificates[-1]
    verifier.verify(token=token, certificate=certificate, request=request, now=at_the_end + 29)
