"""What a lost pod is called, and how ends that are not a script's are written."""

from dataclasses import replace
from typing import Any

import pytest

from harness.facts import NOW, claimed, facts, message, pod, reason, run_status, view, written
from harness.simulated_agents import SUCCESS
from harness.simulation import make_task
from sandyard_api.reasons import Reason
from sandyard_api.wire import RunPhase
from sandyard_operator.decide.ends import pod_deleted, pod_loss
from sandyard_operator.decide.plan import Emit
from sandyard_operator.decide.pod import ContainerView, PodPhase
from sandyard_operator.decide.reconcile import reconcile

DEAD = ContainerView(started=True, exit_code=1, terminated_reason="Error")
OOM = ContainerView(started=True, exit_code=137, terminated_reason="OOMKilled")


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ({}, None),
        ({"node_ready": False}, None),
        ({"disruption_reason": "DeletionByPodGC"}, Reason.NODE_LOST),
        ({"status_reason": "NodeLost"}, Reason.NODE_LOST),
        ({"disruption_reason": "TerminationByKubelet"}, Reason.POD_EVICTED),
        ({"status_reason": "Evicted"}, Reason.POD_EVICTED),
        ({"status_reason": "Preempting"}, Reason.POD_EVICTED),
        ({"deleting": True}, Reason.POD_DELETED),
        ({"deleting": True, "node_ready": False}, Reason.NODE_LOST),
        ({"status_reason": "NodeAffinity", "phase": PodPhase.FAILED}, Reason.POD_REJECTED),
        ({"status_reason": "NodeAffinity"}, None),
        ({"agent": DEAD}, Reason.AGENT_LOST),
        ({"agent": OOM}, Reason.AGENT_LOST),
        ({"runner": DEAD}, Reason.AGENT_LOST),
        ({"runner": OOM}, Reason.OOM_KILLED),
        ({"phase": PodPhase.SUCCEEDED}, Reason.AGENT_LOST),
    ],
)
def test_a_pod_is_lost_by_what_it_shows(shown: dict[str, Any], expected: Reason | None) -> None:
    loss = pod_loss(pod(**shown))
    assert (loss and loss.reason) == expected


def test_an_agent_out_of_memory_is_told_apart() -> None:
    loss = pod_loss(pod(agent=OOM))
    assert loss is not None
    assert "out of memory" in loss.message


def test_a_pod_that_was_well_when_last_seen_was_deleted() -> None:
    assert pod_deleted(pod()).reason is Reason.POD_DELETED


def test_an_end_is_an_event_without_a_users_words() -> None:
    plan = reconcile(facts(make_task(code="# /// script\n# secret = 1\n# ///\n")), NOW)
    event = plan.actions[-1]
    assert isinstance(event, Emit)
    assert event.warning
    assert "secret" not in event.message
    assert "secret" in message(plan)


def test_success_is_no_warning() -> None:
    plan = reconcile(claimed(heard=view(run=run_status(RunPhase.FINISHED, SUCCESS))), NOW)
    assert plan.actions[-1] == Emit("Succeeded", Reason.SUCCEEDED.happened, warning=False)


def test_a_status_that_was_refused_is_written_without_what_the_run_left() -> None:
    done = claimed(heard=view(run=run_status(RunPhase.FINISHED, SUCCESS)))
    plan = reconcile(replace(done, refused_write="too large"), NOW)
    assert reason(plan) == "InternalError"
    assert "Succeeded" in message(plan)
    assert "result" not in written(plan)


@pytest.mark.parametrize(("faults", "ends"), [(4, False), (5, True)])
def test_faults_of_ours_end_a_task_at_last(faults: int, *, ends: bool) -> None:
    plan = reconcile(facts(faults=faults), NOW)
    assert (written(plan).get("reason") == "InternalError") is ends
