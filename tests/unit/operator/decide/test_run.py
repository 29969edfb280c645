"""After W1: one run in one pod, followed to its end."""

from dataclasses import replace
from typing import Any

import pytest

from harness.facts import (
    NOW,
    POD_UID,
    RUN_ID,
    claimed,
    kinds,
    later,
    message,
    pod,
    reason,
    run_status,
    view,
    with_pod,
    written,
)
from sandyard_api.wire import ErrorCode, Isolation, Outcome, RunPhase, RunResult, Stream
from sandyard_operator.decide.facts import AgentRefusal, Observed
from sandyard_operator.decide.plan import (
    AwaitRun,
    CancelRun,
    LearnImage,
    Plan,
    ReadPod,
    RevokeRun,
    StartRun,
)
from sandyard_operator.decide.pod import ContainerView, PodPhase
from sandyard_operator.decide.reconcile import reconcile

RUNNING = run_status()
ENDED = ContainerView(started=True, exit_code=137, terminated_reason="Error")


def running(**heard: Any) -> Observed:
    return claimed(heard=view(**({"run": RUNNING} | heard)))


def finished(result: RunResult, **heard: Any) -> Observed:
    return running(run=run_status(RunPhase.FINISHED, result), ended_at=NOW, **heard)


def cancelled(observed: Observed) -> Observed:
    spec = observed.task.spec.model_copy(update={"cancel": True})
    return replace(observed, task=observed.task.model_copy(update={"spec": spec}))


def test_the_run_of_the_claim_is_started() -> None:
    assert reconcile(claimed(), NOW) == Plan(actions=(StartRun(pod(), RUN_ID, "d" * 64, 60),), due=later(120))


def test_the_same_run_is_started_again_by_a_new_leader() -> None:
    assert kinds(reconcile(claimed(heard=view(status=None)), NOW)) == [StartRun]


def test_another_run_in_the_pod_is_not_taken_for_this_one() -> None:
    other = run_status().model_copy(update={"run_id": "another"})
    assert kinds(reconcile(running(run=other), NOW)) == [StartRun]


def test_a_run_told_with_the_whole_status_counts() -> None:
    status = view().status
    assert status is not None
    told = view(status=status.model_copy(update={"run": RUNNING}))
    assert reconcile(claimed(heard=told), NOW).wait == AwaitRun(POD_UID, RUN_ID)


@pytest.mark.parametrize("phase", [RunPhase.ACCEPTED, RunPhase.RUNNING])
def test_a_run_is_listened_to(phase: RunPhase) -> None:
    plan = reconcile(running(run=run_status(phase)), NOW)
    assert plan == Plan(wait=AwaitRun(POD_UID, RUN_ID), due=later(120))


def test_the_image_is_learnt_while_the_run_goes_on() -> None:
    assert reconcile(replace(running(), image_unknown=True), NOW).actions == (LearnImage(pod()),)
    assert reconcile(replace(running(status=None), image_unknown=True), NOW).actions == ()


def test_success_is_written_whole() -> None:
    result = RunResult(
        outcome=Outcome.EXITED,
        exit_code=0,
        stdout=Stream(text="1\n", bytes=2, sha256="c" * 64),
        warnings=("late",),
        run_milliseconds=1234,
    )
    status = written(reconcile(finished(result), later(2)))
    assert status["phase"] == "Succeeded"
    assert status["result"]["stdout"]["text"] == "1\n"
    assert status["result"]["exitCode"] == 0
    assert status["timings"]["runMilliseconds"] == 1234
    assert status["timings"]["totalMilliseconds"] == 32_000
    assert status["warnings"] == ["late"]
    assert {c["type"]: c["status"] for c in status["conditions"]} == dict.fromkeys(
        ("Accepted", "Scheduled", "Installed", "Finished", "Succeeded"), "True"
    )


@pytest.mark.parametrize(
    ("result", "end", "words"),
    [
        ({"outcome": "exited", "exit_code": 3}, "NonZeroExit", "exit status 3"),
        ({"outcome": "exited", "exit_code": 1, "error_type": "KeyError"}, "NonZeroExit", "KeyError"),
        ({"outcome": "signaled", "signal": "SIGSEGV"}, "KilledBySignal", "SIGSEGV"),
        ({"outcome": "timeout"}, "RunTimeout", "60 s"),
        ({"outcome": "oom"}, "OOMKilled", "memory"),
        ({"outcome": "disk"}, "DiskLimitExceeded", "disk"),
        ({"outcome": "isolationUnavailable"}, "IsolationUnavailable", "did not run"),
        ({"outcome": "isolationUnavailable", "message": "no seccomp"}, "IsolationUnavailable", "no seccomp"),
        ({"outcome": "startFailed"}, "StartFailed", "did not run"),
    ],
)
def test_each_outcome_has_its_reason(result: dict[str, Any], end: str, words: str) -> None:
    plan = reconcile(finished(RunResult(**result)), NOW)
    assert reason(plan) == end
    assert words in message(plan)


def test_a_result_counts_although_the_task_was_cancelled_meanwhile() -> None:
    done = finished(RunResult(outcome=Outcome.EXITED, exit_code=0))
    assert reason(reconcile(cancelled(done), NOW)) == "Succeeded"


def test_a_cancelled_run_keeps_what_it_wrote() -> None:
    result = RunResult(outcome=Outcome.CANCELLED, stdout=Stream(text="part", bytes=4))
    plan = reconcile(cancelled(finished(result)), NOW)
    assert reason(plan) == "Cancelled"
    assert written(plan)["result"]["stdout"]["text"] == "part"


def test_a_run_stopped_for_its_time_is_told_as_that() -> None:
    stopped = finished(RunResult(outcome=Outcome.CANCELLED), cancel_at=NOW)
    assert reason(reconcile(stopped, NOW)) == "RunTimeout"


def test_a_run_that_nobody_cancelled_was_stopped_with_its_pod() -> None:
    stopped = finished(RunResult(outcome=Outcome.CANCELLED))
    assert reason(reconcile(stopped, NOW)) == "Cancelled"
    dying = with_pod(stopped, pod(deleting=True), stopped.agents[POD_UID])
    assert reason(reconcile(dying, NOW)) == "PodDeleted"


LOST = RunResult(outcome=Outcome.SUPERVISOR_LOST, stdout=Stream(text="so far", bytes=6))


def test_a_lost_supervisor_waits_for_what_the_pod_shows() -> None:
    assert reconcile(finished(LOST), later(9)) == Plan(due=later(10))


def test_a_lost_supervisor_ends_as_lost() -> None:
    plan = reconcile(finished(LOST), later(10))
    assert reason(plan) == "AgentLost"
    assert "may have run" in message(plan)
    assert written(plan)["result"]["stdout"]["text"] == "so far"


def test_a_container_killed_whole_for_its_memory_is_oom() -> None:
    oom = pod(runner=replace(ENDED, terminated_reason="OOMKilled"))
    plan = reconcile(with_pod(finished(LOST), oom, finished(LOST).agents[POD_UID]), NOW)
    assert reason(plan) == "OOMKilled"


def test_an_oom_told_for_a_supervisor_that_ended_well_is_not_believed() -> None:
    odd = pod(runner=ContainerView(started=True, exit_code=0, terminated_reason="OOMKilled"))
    plan = reconcile(with_pod(finished(LOST), odd, finished(LOST).agents[POD_UID]), NOW)
    assert reason(plan) == "AgentLost"


def test_a_lost_supervisor_of_an_evicted_pod_is_an_eviction() -> None:
    evicted = pod(disruption_reason="EvictionByEvictionAPI", deleting=True)
    plan = reconcile(with_pod(finished(LOST), evicted, finished(LOST).agents[POD_UID]), NOW)
    assert reason(plan) == "PodEvicted"


def test_a_finished_run_without_a_result_is_as_good_as_lost() -> None:
    odd = running(run=run_status(RunPhase.FINISHED), ended_at=NOW)
    assert reason(reconcile(odd, later(10))) == "AgentLost"


def test_a_lost_supervisor_first_heard_of_now_gets_its_time() -> None:
    odd = running(run=run_status(RunPhase.FINISHED, LOST))
    assert reconcile(odd, NOW) == Plan(due=later(10))


def test_a_pod_that_is_not_seen_is_looked_for() -> None:
    gone = replace(claimed(), pods=())
    assert reconcile(gone, NOW) == Plan(actions=(ReadPod("sandyard-uid-t-1", POD_UID),))


@pytest.mark.parametrize(
    ("last", "end"),
    [
        (None, "PodDeleted"),
        (pod(), "PodDeleted"),
        (pod(disruption_reason="PreemptionByScheduler"), "PodEvicted"),
        (pod(deleting=True, node_ready=False), "NodeLost"),
        (pod(disruption_reason="DeletionByTaintManager"), "NodeLost"),
    ],
)
def test_a_pod_that_is_gone_ends_the_task_and_is_never_replaced(last: Any, end: str) -> None:
    views = {} if last is None else {POD_UID: last}
    gone = replace(claimed(), pods=(), absent=frozenset({POD_UID}), last_views=views)
    plan = reconcile(gone, NOW)
    assert reason(plan) == end
    assert "may have run" in message(plan)


@pytest.mark.parametrize(
    ("shown", "end"),
    [
        ({"agent": ENDED}, "AgentLost"),
        ({"agent": replace(ENDED, terminated_reason="OOMKilled")}, "AgentLost"),
        ({"phase": PodPhase.FAILED, "status_reason": "Evicted"}, "PodEvicted"),
        ({"phase": PodPhase.FAILED, "status_reason": "NodeShutdown"}, "NodeLost"),
        ({"phase": PodPhase.FAILED, "status_reason": "OutOfcpu"}, "PodRejected"),
        ({"phase": PodPhase.FAILED}, "AgentLost"),
        ({"phase": PodPhase.SUCCEEDED}, "AgentLost"),
    ],
)
def test_a_pod_that_ended_ends_the_task(shown: dict[str, Any], end: str) -> None:
    plan = reconcile(with_pod(running(), pod(**shown), view(run=RUNNING)), NOW)
    assert reason(plan) == end
    assert "may have run" in message(plan)


def test_a_pod_that_is_being_deleted_may_still_tell() -> None:
    dying = with_pod(running(), pod(deleting=True), view(run=RUNNING))
    assert reconcile(dying, NOW).wait == AwaitRun(POD_UID, RUN_ID)


def test_a_dying_pod_that_falls_silent_is_lost_soon() -> None:
    dying = with_pod(running(), pod(deleting=True), view(run=RUNNING, unreachable_at=NOW))
    assert reconcile(dying, NOW).due == later(5)
    assert reason(reconcile(dying, later(5))) == "PodDeleted"


def test_a_silent_agent_is_given_time() -> None:
    silent = running(unreachable_at=NOW)
    assert reconcile(silent, later(1)).wait == AwaitRun(POD_UID, RUN_ID)
    plan = reconcile(silent, later(120))
    assert reason(plan) == "AgentLost"
    assert "may have run" in message(plan)


def test_a_silent_agent_on_a_node_that_is_not_ready_is_a_lost_node() -> None:
    silent = with_pod(running(), pod(node_ready=False), view(run=RUNNING, unreachable_at=NOW))
    assert reason(reconcile(silent, later(120))) == "NodeLost"


def test_a_run_whose_start_got_no_answer_is_given_time_too() -> None:
    silent = claimed(heard=view(unreachable_at=NOW))
    plan = reconcile(silent, NOW)
    assert kinds(plan) == [StartRun]
    assert plan.due == later(120)


def test_a_cancel_before_the_start_revokes() -> None:
    assert kinds(reconcile(cancelled(claimed()), NOW)) == [RevokeRun]


@pytest.mark.parametrize("user", [True, False])
def test_a_revoked_run_did_not_run(*, user: bool) -> None:
    refusal = AgentRefusal(code=ErrorCode.CONFLICT, message="other inputs")
    revoked = running(run=run_status(RunPhase.REVOKED), refusal=None if user else refusal)
    plan = reconcile(cancelled(revoked) if user else revoked, NOW)
    assert reason(plan) == ("Cancelled" if user else "StartFailed")
    assert "did not run" in message(plan)
    assert user or "other inputs" in message(plan)


def test_a_run_revoked_for_no_known_cause_failed_to_start() -> None:
    assert reason(reconcile(running(run=run_status(RunPhase.REVOKED)), NOW)) == "StartFailed"


def test_a_cancel_of_a_running_script_stops_it_and_listens() -> None:
    assert kinds(reconcile(cancelled(running()), NOW)) == [CancelRun]
    asked = reconcile(cancelled(running(cancel_at=NOW)), later(1))
    assert asked == Plan(wait=AwaitRun(POD_UID, RUN_ID), due=later(30))


def test_a_run_that_does_not_stop_ends_with_its_pod() -> None:
    assert reason(reconcile(cancelled(running(cancel_at=NOW)), later(30))) == "Cancelled"


def test_a_cancelled_task_whose_agent_is_silent_ends_sooner() -> None:
    silent = cancelled(running(unreachable_at=NOW))
    assert reconcile(silent, NOW).due == later(30)
    plan = reconcile(silent, later(30))
    assert reason(plan) == "Cancelled"
    assert "may have run" in message(plan)


def test_a_run_that_its_agent_does_not_end_is_ended() -> None:
    assert kinds(reconcile(running(), later(120))) == [CancelRun]
    assert reason(reconcile(running(cancel_at=later(120)), later(150))) == "RunTimeout"


def test_a_run_first_seen_by_a_new_leader_has_its_time_again() -> None:
    assert reconcile(running(seen_at=later(1000)), later(1000)).due == later(1120)


def test_a_claim_without_a_start_time_counts_from_when_it_was_seen() -> None:
    known = running(seen_at=NOW)
    status = known.task.status
    assert status is not None
    task = known.task.model_copy(update={"status": status.model_copy(update={"start_time": None})})
    assert reconcile(replace(known, task=task), NOW).due == later(120)


REFUSAL = AgentRefusal(code=ErrorCode.CONFLICT, message="another run")


def test_a_refused_start_is_revoked() -> None:
    assert kinds(reconcile(claimed(heard=view(refusal=REFUSAL)), NOW)) == [RevokeRun]


@pytest.mark.parametrize("heard", [{"revoke_refused": True}, {"run": RUNNING}])
def test_a_refusal_that_cannot_be_settled_leaves_it_open_whether_it_ran(heard: dict[str, Any]) -> None:
    plan = reconcile(claimed(heard=view(refusal=REFUSAL, **heard)), NOW)
    assert reason(plan) == "AgentLost"
    assert "may have run" in message(plan)


def test_what_was_in_force_is_told_by_the_run_itself() -> None:
    result = RunResult(outcome=Outcome.EXITED, exit_code=0)
    told = run_status(RunPhase.FINISHED, result).model_copy(
        update={"isolation": Isolation(network="Egress", runtime_class="gvisor", landlock_abi=5)}
    )
    isolation = written(reconcile(running(run=told), NOW))["isolation"]
    assert isolation == {
        "network": "Egress",
        "seccomp": False,
        "landlockABI": 5,
        "userNamespace": False,
        "runtimeClass": "gvisor",
    }
