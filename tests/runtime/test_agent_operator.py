"""The operator's own client against a real agent: both ends of the contract meet before a cluster does."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.agent import HOST, POD_UID
from harness.pair import make_bundle, pair
from sandyard_api import names, wire
from sandyard_operator.agents.client import AgentClient
from sandyard_operator.agents.signer import Signer
from sandyard_operator.decide.pod import PodPhase, PodView
from sandyard_operator.ports import AgentRefusedError, AgentUnreachableError

CODE = b"import sys\nprint(sys.stdin.read())\n"


def pod_view(*, uid: str = POD_UID) -> PodView:
    return PodView(
        namespace="ns",
        name="pod",
        uid=uid,
        resource_version="1",
        owner_uid="owner",
        attempt=1,
        signed=True,
        created_at=datetime.now(UTC),
        phase=PodPhase.RUNNING,
        deleting=False,
        deletion_by_operator=False,
        network=names.NETWORK_CLOSED,
        ip=HOST,
    )


async def test_a_task_through_the_operators_client(tmp_path: Path) -> None:
    with pair(tmp_path) as pod:
        authority = pod.agent.at(names.AGENT_TLS_DIR) / "tls.crt"
        client = AgentClient(
            ca_bundle=authority.read_text(),
            signer=Signer(pod.agent.keys.root),
            server_name=lambda _namespace: HOST,
            now=time.time,
            monotonic=time.monotonic,
            observer=lambda _endpoint, _error: None,
            port=pod.agent.port,
        )
        view, inputs = pod_view(), make_bundle(CODE, stdin=b"hello")
        async with client:
            status = await client.status(view, wait=20)
            assert status.supervisor is wire.SupervisorPhase.READY
            assert await client.send_bundle(view, inputs) == inputs.digest
            reply = await client.requirements(view, wire.RequirementsRequest(requirements=("six",)))
            assert reply.missing == ("six",)
            assert not (await client.probe(view, wire.ProbeRequest(host=HOST, port=1))).connected
            start = wire.StartRequest(epoch=3, input_digest=inputs.digest, run_timeout_seconds=9)
            assert (await client.start(view, "run-1", start)).phase is wire.RunPhase.ACCEPTED
            while (state := await client.run_status(view, "run-1", wait=20)).phase is not wire.RunPhase.FINISHED:
                pass
            assert state.result is not None
            assert state.result.stdout.text == "hello\n"
            with pytest.raises(AgentRefusedError) as refused:
                await client.start(view, "run-1", start.model_copy(update={"epoch": 2}))
            assert refused.value.code is wire.ErrorCode.STALE_EPOCH
            assert (await client.acknowledge(view, "run-1")).acknowledged
            with pytest.raises((AgentUnreachableError, AgentRefusedError)):
                await client.status(pod_view(uid="another"), wait=0)
