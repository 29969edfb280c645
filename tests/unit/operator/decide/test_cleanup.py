"""After the end: acknowledge, delete, expire."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from harness.facts import (
    NOW,
    POD_UID,
    RUN_ID,
    claimed,
    facts,
    kinds,
    later,
    pod,
    run_status,
    stored,
    view,
    with_pod,
)
from harness.simulated_agents import SUCCESS
from harness.simulation import START, make_class, make_task
from sandyard_api.wire import ErrorCode, RunPhase
from sandyard_operator.decide.facts import AgentRefusal, Observed
from sandyard_operator.decide.plan import Acknowledge, DeletePod, DeleteTask, Plan, ReadTask
from sandyard_operator.decide.pod import ContainerView
from sandyard_operator.decide.reconcile import reconcile


def finished(**heard: Any) -> Observed:
    done = claimed(heard=view(run=run_status(RunPhase.FINISHED, SUCCESS)))
    over = replace(done, task=stored(done, reconcile(done, NOW)))
    return with_pod(over, heard=view(**heard))


def without_pods(observed: Observed) -> Observed:
    return replace(observed, pods=(), agents={})


def test_the_result_is_acknowledged_and_the_pod_deleted() -> None:
    assert reconcile(finished(), NOW) == Plan(actions=(Acknowledge(pod(), RUN_ID), DeletePod(pod())))


@pytest.mark.parametrize(
    "heard",
    [
        {"acknowledged": True},
        {"unreachable_at": NOW},
        {"refusal": AgentRefusal(code=ErrorCode.INTERNAL, message="")},
    ],
)
def test_a_pod_that_cannot_be_told_goes_without(heard: dict[str, Any]) -> None:
    assert kinds(reconcile(finished(**heard), NOW)) == [DeletePod]


def test_a_dead_agent_is_not_told() -> None:
    dead = with_pod(finished(), pod(agent=ContainerView(started=True, exit_code=1)))
    assert kinds(reconcile(dead, NOW)) == [DeletePod]


def test_pods_of_other_attempts_go_as_well() -> None:
    other = pod(uid="other", attempt=2)
    both = replace(finished(), pods=(other, pod()))
    assert kinds(reconcile(both, NOW)) == [DeletePod, Acknowledge, DeletePod]


def test_a_pod_nothing_was_heard_of_goes_without() -> None:
    assert kinds(reconcile(replace(finished(), agents={}), NOW)) == [DeletePod]


@pytest.mark.parametrize(
    "going", [{"pods": (pod(deleting=True),)}, {"deleted": frozenset({POD_UID})}], ids=["seen", "asked for"]
)
def test_a_pod_is_deleted_once(going: dict[str, Any]) -> None:
    assert reconcile(replace(finished(), **going), NOW).actions == ()


def test_a_finished_task_goes_after_its_time() -> None:
    over = without_pods(finished())
    assert reconcile(over, NOW) == Plan(due=NOW + timedelta(days=1))
    assert reconcile(over, NOW + timedelta(days=1)) == Plan(actions=(DeleteTask(),))


def test_its_own_time_to_live_counts_first_then_the_classs() -> None:
    over = without_pods(finished())
    spec = over.task.spec.model_copy(update={"ttl_seconds_after_finished": 7})
    own = replace(over, task=over.task.model_copy(update={"spec": spec}))
    assert reconcile(own, NOW).due == later(7)
    short = make_class(timeouts={"defaultTTLSecondsAfterFinished": 9})
    assert reconcile(replace(over, sandbox_class=short), NOW).due == later(9)
    assert reconcile(replace(over, sandbox_class=None), NOW).due == NOW + timedelta(days=1)


def test_a_finished_task_without_its_time_stays() -> None:
    over = without_pods(finished())
    assert over.task.status is not None
    status = over.task.status.model_copy(update={"completion_time": None})
    assert reconcile(replace(over, task=over.task.model_copy(update={"status": status})), NOW) == Plan()


def test_a_final_status_is_never_decided_again() -> None:
    over = without_pods(finished())
    spec = over.task.spec.model_copy(update={"cancel": True})
    assert reconcile(replace(over, task=over.task.model_copy(update={"spec": spec})), NOW).actions == ()


@pytest.mark.parametrize("pods", [(), (pod(),), (pod(deleting=True),)])
def test_a_task_that_is_being_deleted_takes_its_pods_along(pods: tuple[Any, ...]) -> None:
    task = make_task()
    metadata = task.metadata.model_copy(update={"deletion_timestamp": START})
    going = facts(task.model_copy(update={"metadata": metadata}), pods=pods)
    live = [one for one in pods if not one.deleting]
    assert reconcile(going, NOW) == Plan(actions=tuple(DeletePod(one) for one in live))


def test_a_write_without_an_answer_is_read_before_anything_is_decided() -> None:
    assert reconcile(facts(unsure=True), NOW) == Plan(actions=(ReadTask(),))
