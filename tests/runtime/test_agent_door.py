"""The agent's door: who is let in, what strangers learn, and that one caller never starves another."""

from collections.abc import Iterator

import pytest

from harness.agent import AgentProcess
from sandyard_api import wire


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    with AgentProcess(tmp_path_factory.mktemp("agent")) as agent:
        yield agent


def test_health_needs_no_token(agent: AgentProcess) -> None:
    assert agent.send("GET", wire.PATH_HEALTH, headers={}).status == 200


def test_status_tells_the_pod(agent: AgentProcess) -> None:
    answer = agent.call("GET", wire.PATH_STATUS)
    assert answer.status == 200, answer.body
    assert answer.json()["supervisor"] == "starting"
