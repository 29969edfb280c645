"""From a place to the point of no return."""

from dataclasses import replace
from typing import Any

import pytest

from harness.facts import (
    ALONE,
    DEPENDENT,
    NOW,
    POD_UID,
    admitted,
    kinds,
    later,
    message,
    pod,
    ready_status,
    reason,
    satisfied,
    step,
    stored,
    view,
    with_pod,
    written,
)
from harness.simulation import START, make_class, make_task
from sandyard_api.wire import ErrorCode, Isolation, SupervisorPhase
from sandyard_operator.decide.facts import AgentRefusal, Place, Refusal
from sandyard_operator.decide.judge import NeedsInputs
from sandyard_operator.decide.plan import (
    AskRequirements,
    AwaitAgent,
    CheckPolicies,
    CreatePod,
    Emit,
    NextAttempt,
    Plan,
    ReadInputs,
    ReadPod,
    StageBundle,
    StatusStep,
)
from sandyard_operator.decide.pod import ContainerView, PodPhase, RefusalKind
from sandyard_operator.decide.reconcile import reconcile

RETRYING = make_task(retryPolicy="OnInfrastructureFailure")


def refused(kind: RefusalKind) -> Refusal:
    return Refusal(kind=kind, message="said no", at=NOW)


def test_a_pod_is_made_for_an_admitted_task() -> None:
    assert reconcile(admitted(), NOW) == Plan(actions=(CreatePod(1),))


def test_inputs_are_read_again_after_a_restart() -> None:
    assert kinds(reconcile(replace(admitted(), verdict=NeedsInputs()), NOW)) == [ReadInputs]


def test_an_admitted_task_that_is_not_valid_any_more_ends() -> None:
    assert reason(reconcile(admitted(sandbox_class=None), NOW)) == "ClassNotFound"


def test_a_task_admitted_beyond_the_places_waits() -> None:
    crowded = Place(admitted=4, waiting_before=0, waiting_taken=0, placed_before=4, quota_before=False)
    assert reconcile(admitted(place=crowded), NOW) == Plan()


def test_a_pod_that_was_made_and_is_not_seen_is_looked_for() -> None:
    assert reconcile(admitted(created=pod()), NOW) == Plan(actions=(ReadPod(pod().name, POD_UID),))


@pytest.mark.parametrize("known", [True, False])
def test_a_pod_that_is_gone_before_the_start_ends_the_task(*, known: bool) -> None:
    last = {POD_UID: pod(status_reason="Evicted", phase=PodPhase.FAILED)} if known else {}
    plan = reconcile(admitted(created=pod(), absent=frozenset({POD_UID}), last_views=last), NOW)
    assert reason(plan) == ("PodEvicted" if known else "PodDeleted")
    assert "did not run" in message(plan)


def test_a_pod_that_somebody_changed_is_not_used() -> None:
    plan = reconcile(with_pod(admitted(), pod(signed=False)), NOW)
    assert reason(plan) == "PodRejected"
    assert "changed" in message(plan)


def test_a_retry_takes_another_pod_and_says_so() -> None:
    lost = with_pod(admitted(RETRYING), pod(deleting=True))
    plan = reconcile(lost, NOW)
    assert kinds(plan) == [Emit, NextAttempt]
    assert plan.actions[1] == NextAttempt(1)


def test_retries_end() -> None:
    lost = with_pod(admitted(RETRYING, attempt=3), pod(deleting=True, attempt=3))
    assert reason(reconcile(lost, NOW)) == "PodDeleted"


def test_a_name_that_somebody_took_is_passed_over() -> None:
    assert kinds(reconcile(admitted(name_taken=True), NOW)) == [NextAttempt]


def test_names_end() -> None:
    assert reason(reconcile(admitted(name_taken=True, attempt=8), NOW)) == "PodRejected"


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        (RefusalKind.QUOTA_TOO_SMALL, "QuotaExceeded"),
        (RefusalKind.ADMISSION, "PodRejected"),
        (RefusalKind.INVALID, "PodRejected"),
    ],
)
def test_a_refused_pod_ends_the_task(kind: RefusalKind, end: str) -> None:
    plan = reconcile(admitted(refusal=refused(kind)), NOW)
    assert reason(plan) == end
    assert "said no" in message(plan)


def test_quota_taken_by_others_is_waited_for_and_told_once() -> None:
    waiting = admitted(refusal=refused(RefusalKind.QUOTA_TAKEN))
    plan = reconcile(waiting, NOW)
    assert step(plan) is StatusStep.PROGRESS
    assert written(plan)["phase"] == "Queued"
    assert "quota" in message(plan)
    told = replace(waiting, task=stored(waiting, plan))
    assert reconcile(told, NOW) == Plan(due=later(10))
    assert kinds(reconcile(told, later(10))) == [CreatePod]


def test_waiting_for_quota_ends_with_the_time_in_the_queue() -> None:
    waiting = admitted(make_task(queueTimeoutSeconds=35), refusal=refused(RefusalKind.QUOTA_TAKEN))
    told = replace(waiting, task=stored(waiting, reconcile(waiting, NOW)))
    assert reconcile(told, NOW).due == later(5)
    assert reason(reconcile(told, later(5))) == "QueueTimeout"


def test_those_that_wait_for_quota_keep_their_order() -> None:
    behind = Place(admitted=1, waiting_before=0, waiting_taken=0, placed_before=1, quota_before=True)
    plan = reconcile(admitted(place=behind), NOW)
    assert written(plan)["reason"] == "QuotaExceeded"


def test_a_task_that_waited_for_quota_says_that_it_starts() -> None:
    waiting = admitted(refusal=refused(RefusalKind.QUOTA_TAKEN))
    told = replace(waiting, task=stored(waiting, reconcile(waiting, NOW)), refusal=None)
    plan = reconcile(with_pod(told, pod(ip=""), view(status=None)), NOW)
    assert written(plan)["phase"] == "Starting"
    assert written(plan)["timings"]["queueMilliseconds"] == 0


def test_a_namespace_that_ends_takes_the_task_along() -> None:
    plan = reconcile(admitted(refusal=refused(RefusalKind.NAMESPACE_ENDING)), NOW)
    assert plan == Plan(due=later(60))


def test_an_agent_is_waited_for_once_its_address_is_known() -> None:
    no_address = with_pod(admitted(), pod(ip=""), view(status=None))
    assert reconcile(no_address, NOW).wait is None
    coming = reconcile(with_pod(admitted(), heard=view(status=None)), NOW)
    assert coming.wait == AwaitAgent(POD_UID)
    assert coming.due == later(270)


def test_a_pod_seen_for_the_first_time_has_its_whole_time_to_start() -> None:
    unseen = replace(with_pod(admitted()), agents={})
    assert reconcile(unseen, NOW).due == later(300)


@pytest.mark.parametrize(
    ("shown", "end", "words"),
    [
        ({"scheduled": False, "unschedulable_message": "0/1 nodes: cpu"}, "Unschedulable", "0/1 nodes"),
        ({"scheduled": False}, "Unschedulable", "no node"),
        (
            {"runner": ContainerView(started=False, waiting_reason="ImagePullBackOff", waiting_message="404")},
            "ImagePullFailed",
            "404",
        ),
        (
            {"agent": ContainerView(started=False, waiting_reason="ErrImagePull")},
            "ImagePullFailed",
            "ErrImagePull",
        ),
        (
            {"runner": ContainerView(started=False, waiting_reason="CreateContainerError", waiting_message="m")},
            "StartFailed",
            "CreateContainerError",
        ),
        ({}, "StartFailed", "did not answer"),
    ],
)
def test_what_is_not_ready_in_time_ends_by_what_the_pod_shows(shown: dict[str, Any], end: str, words: str) -> None:
    late = with_pod(admitted(), pod(**shown), view(status=None))
    plan = reconcile(late, later(270))
    assert reason(plan) == end
    assert words in message(plan)
    assert "did not run" in message(plan)


def test_before_that_time_nothing_of_it_is_final() -> None:
    early = with_pod(admitted(), pod(scheduled=False), view(status=None))
    assert reconcile(early, later(269)).actions == ()


def test_a_lost_supervisor_ends_the_start() -> None:
    lost = view(status=ready_status(supervisor=SupervisorPhase.LOST))
    assert reason(reconcile(with_pod(admitted(), heard=lost), NOW)) == "AgentLost"


def test_a_refusing_agent_ends_the_start() -> None:
    plan = reconcile(
        with_pod(admitted(), heard=view(refusal=AgentRefusal(code=ErrorCode.TOO_LARGE, message="too big"))), NOW
    )
    assert reason(plan) == "StartFailed"
    assert "too big" in message(plan)


def test_a_silent_agent_is_given_half_a_minute() -> None:
    silent = with_pod(admitted(), heard=view(unreachable_at=NOW))
    assert kinds(reconcile(silent, later(29)))
    assert reason(reconcile(silent, later(30))) == "AgentLost"


@pytest.mark.parametrize("staged", ["", "other"])
def test_inputs_are_staged_until_the_agent_has_these(staged: str) -> None:
    assert kinds(reconcile(with_pod(admitted(), heard=view(staged_digest=staged)), NOW)) == [StageBundle]


def test_requirements_are_asked_for_where_the_script_has_some() -> None:
    plan = reconcile(with_pod(admitted(make_task(code=DEPENDENT))), NOW)
    assert plan.actions == (AskRequirements(pod(), ("six==1.17.0",), ""),)


def test_what_the_image_has_is_not_installed() -> None:
    have = view(requirements=satisfied())
    plan = reconcile(with_pod(admitted(make_task(code=DEPENDENT)), heard=have), NOW)
    assert step(plan) is StatusStep.CLAIM


def test_an_image_with_another_python_ends_the_task() -> None:
    code = "# /// script\n# requires-python = '>=3.99'\n# ///\n"
    told = view(requirements=satisfied(python_satisfied=False))
    plan = reconcile(with_pod(admitted(make_task(code=code)), heard=told), NOW)
    assert reason(plan) == "PythonVersionUnsatisfied"
    assert "3.99" in message(plan)


def test_policies_of_others_are_looked_for_before_the_claim() -> None:
    assert kinds(reconcile(with_pod(admitted(), heard=view(foreign_policies=None)), NOW)) == [CheckPolicies]


def test_a_class_that_needs_no_policies_has_none_looked_for() -> None:
    lax = make_class(isolation={"require": ["seccomp"]})
    unseen = with_pod(admitted(sandbox_class=lax), heard=view(foreign_policies=None))
    assert step(reconcile(unseen, NOW)) is StatusStep.CLAIM


@pytest.mark.parametrize(
    ("required", "task", "told", "words"),
    [
        ({"require": ["seccomp"]}, {}, {"isolation": Isolation()}, "system call filter"),
        ({"require": ["landlock"]}, {}, {"isolation": Isolation(seccomp=True)}, "Landlock"),
        (
            {},
            {"network": {"egress": [{"cidr": "203.0.113.0/24"}]}},
            {"isolation": Isolation(seccomp=True, landlock_abi=3)},
            "ABI 4",
        ),
    ],
)
def test_missing_isolation_ends_the_task(
    required: dict[str, Any], task: dict[str, Any], told: dict[str, Any], words: str
) -> None:
    sandbox_class = make_class(isolation=required, network={"allowedEgress": [{"cidr": "203.0.113.0/24"}]})
    observed = admitted(make_task(), sandbox_class=sandbox_class)
    asked = observed.task.model_copy(update={"spec": make_task(**task).spec})
    heard = view(status=ready_status(**told))
    plan = reconcile(with_pod(replace(observed, task=asked), heard=heard), NOW)
    assert reason(plan) == "IsolationUnavailable"
    assert words in message(plan)


def test_a_required_user_namespace_that_is_not_there_ends_the_task() -> None:
    strict = make_class(userNamespaces="Required")
    plan = reconcile(with_pod(admitted(sandbox_class=strict)), NOW)
    assert "user namespace" in message(plan)


def test_a_policy_of_others_is_named() -> None:
    plan = reconcile(with_pod(admitted(), heard=view(foreign_policies=("open-all",))), NOW)
    assert reason(plan) == "IsolationUnavailable"
    assert "open-all" in message(plan)


def test_the_claim_names_pod_run_and_inputs_and_nothing_starts_yet() -> None:
    plan = reconcile(with_pod(admitted()), NOW)
    status = written(plan)
    assert len(plan.actions) == 1
    assert step(plan) is StatusStep.CLAIM
    assert status["run"] == {
        "podName": "sandyard-uid-t-1",
        "podUID": POD_UID,
        "attempt": 1,
        "runID": "uid-t-1",
        "inputDigest": "d" * 64,
    }
    assert status["phase"] == "Running"
    assert status["nodeName"] == "node-1"
    assert status["isolation"]["seccomp"] is True
    assert {c["type"]: c["status"] for c in status["conditions"]} == dict.fromkeys(
        ("Accepted", "Scheduled", "Installed"), "True"
    )


def test_a_condition_moves_its_time_only_with_its_status() -> None:
    status = written(reconcile(with_pod(admitted()), NOW))
    times = {c["type"]: c["lastTransitionTime"] for c in status["conditions"]}
    assert times["Accepted"].startswith(f"{START:%Y-%m-%dT%H:%M:%S}")
    assert times["Scheduled"].startswith(f"{NOW:%Y-%m-%dT%H:%M:%S}")


def test_a_cancel_before_the_claim_ends_the_task_without_a_start() -> None:
    cancelled = with_pod(admitted())
    spec = cancelled.task.spec.model_copy(update={"cancel": True})
    plan = reconcile(replace(cancelled, task=cancelled.task.model_copy(update={"spec": spec})), NOW)
    assert reason(plan) == "Cancelled"
    assert "run" not in written(plan)


def test_alone_means_alone() -> None:
    assert ALONE.admitted == 0
