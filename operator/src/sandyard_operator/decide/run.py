"""After W1: one run in one pod, started at most once, followed to its end through every restart.

Whatever happens here, no second pod and no second run id: a lost pod may have run the script, and says so.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sandyard_api.reasons import Reason
from sandyard_api.task_status import Run
from sandyard_api.wire import Outcome, RunPhase, RunResult, RunStatus
from sandyard_operator.decide.ends import (
    DID_NOT_RUN,
    MAY_HAVE_RUN,
    End,
    Ran,
    pod_deleted,
    pod_loss,
    run_end,
)
from sandyard_operator.decide.facts import AgentView, Observed
from sandyard_operator.decide.finish import finish
from sandyard_operator.decide.plan import (
    AwaitRun,
    CancelRun,
    LearnImage,
    Plan,
    ReadPod,
    RevokeRun,
    StartRun,
)
from sandyard_operator.decide.pod import PodPhase, PodView

ENDED: Final = (PodPhase.FAILED, PodPhase.SUCCEEDED)
SILENCE_SECONDS: Final = 120.0  # a partition may heal and the agent holds the result
CANCEL_SILENCE_SECONDS: Final = 30.0  # the user waits for the stop, not for the output
DYING_SILENCE_SECONDS: Final = 5.0  # the pod is being taken away: it will not come back
CANCEL_SECONDS: Final = 30.0  # for the agent to stop a run
RUN_GRACE_SECONDS: Final = 60.0  # the agent ends the run itself; this is for one that does not
VERDICT_SECONDS: Final = 10.0  # for the kubelet to tell how a container ended


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A claimed task whose pod is there."""

    observed: Observed
    run: Run
    pod: PodView
    view: AgentView
    phase: RunPhase
    now: datetime


def follow(observed: Observed, run: Run, now: datetime) -> Plan:
    """Decide for a task whose W1 is written."""
    pod = observed.pod_with(run.pod_uid)
    if pod is None:
        return _without_pod(observed, run, now)
    view = observed.view_of(pod, now)
    state = _state(view, run)
    phase = RunPhase.UNKNOWN if state is None else state.phase
    case = _Case(observed=observed, run=run, pod=pod, view=view, phase=phase, now=now)
    if state is not None and state.result is not None:
        return _finished(case, state, state.result)
    if phase is RunPhase.FINISHED and state is not None:  # and how is not told: as good as lost
        return _finished(case, state, RunResult(outcome=Outcome.SUPERVISOR_LOST))
    if phase is RunPhase.REVOKED:
        return finish(observed, now, _revocation(observed, view))
    return _lost(case) or _go_on(case)


def _state(view: AgentView, run: Run) -> RunStatus | None:
    told = view.run
    if told is None and view.status is not None:
        told = view.status.run
    return told if told is not None and told.run_id == run.run_id else None


def _without_pod(observed: Observed, run: Run, now: datetime) -> Plan:
    if run.pod_uid not in observed.absent:
        return Plan(actions=(ReadPod(run.pod_name, run.pod_uid),))
    return finish(observed, now, _may_have_run(pod_deleted(observed.last_views.get(run.pod_uid))))


def _revocation(observed: Observed, view: AgentView) -> End:
    if observed.task.spec.cancel:
        return End(Reason.CANCELLED, f"spec.cancel was set. {DID_NOT_RUN}")
    why = "" if view.refusal is None else f": {view.refusal.message} ({view.refusal.code})"
    return End(Reason.START_FAILED, f"The agent did not take the run{why}. {DID_NOT_RUN}")


def _finished(case: _Case, state: RunStatus, result: RunResult) -> Plan:
    end = run_end(result, run_timeout_seconds=case.observed.run_timeout_seconds)
    if result.outcome is Outcome.SUPERVISOR_LOST:
        loss = pod_loss(case.pod)
        deadline = (case.view.ended_at or case.now) + timedelta(seconds=VERDICT_SECONDS)
        if loss is None and case.now < deadline:
            return Plan(due=deadline)
        end = end if loss is None else _may_have_run(loss)
    elif result.outcome is Outcome.CANCELLED and not case.observed.task.spec.cancel:
        overrun = case.view.cancel_at is not None
        end = _overrun(case.observed) if overrun else pod_loss(case.pod) or end
    return finish(case.observed, case.now, end, ran=Ran(state=state, result=result, pod=case.pod))


def _may_have_run(loss: End) -> End:
    """Say so, unless the reason itself tells that the script was running."""
    return loss if loss.reason is Reason.OOM_KILLED else End(loss.reason, f"{loss.message} {MAY_HAVE_RUN}")


def _overrun(observed: Observed) -> End:
    return End(Reason.RUN_TIMEOUT, f"The script was stopped after {observed.run_timeout_seconds} s.")


def _lost(case: _Case) -> Plan | None:
    """End the task when nothing more can be heard from the pod."""
    observed, pod = case.observed, case.pod
    loss = pod_loss(pod)
    if loss is not None and (pod.agent.exit_code is not None or pod.phase in ENDED):
        return finish(observed, case.now, _may_have_run(loss))
    silent_until = _silence_deadline(case)
    if silent_until is None or case.now < silent_until:
        return None
    if loss is None and not pod.node_ready:
        loss = End(Reason.NODE_LOST, f"Node {pod.node_name} does not answer.")
    if loss is None and observed.task.spec.cancel:
        loss = End(Reason.CANCELLED, "spec.cancel was set and the agent does not answer; its pod is deleted.")
    if loss is None:
        loss = End(Reason.AGENT_LOST, "The agent stopped answering.")
    return finish(observed, case.now, _may_have_run(loss))


def _silence_deadline(case: _Case) -> datetime | None:
    if case.view.unreachable_at is None:
        return None
    seconds = CANCEL_SILENCE_SECONDS if case.observed.task.spec.cancel else SILENCE_SECONDS
    if pod_loss(case.pod) is not None:
        seconds = DYING_SILENCE_SECONDS
    return case.view.unreachable_at + timedelta(seconds=seconds)


def _go_on(case: _Case) -> Plan:
    observed, run, pod, view = case.observed, case.run, case.pod, case.view
    if view.refusal is not None:
        if case.phase is RunPhase.UNKNOWN and not view.revoke_refused:
            return Plan(actions=(RevokeRun(pod, run.run_id),))
        message = f"The agent refused: {view.refusal.message} ({view.refusal.code}). {MAY_HAVE_RUN}"
        return finish(observed, case.now, End(Reason.AGENT_LOST, message))
    silent_until = _silence_deadline(case)
    overrun_at = _overrun_at(observed, view)
    due = overrun_at if silent_until is None else min(overrun_at, silent_until)
    if observed.task.spec.cancel or case.now >= overrun_at:
        return _stop(case, silent_until)
    if case.phase is RunPhase.UNKNOWN:
        seconds = observed.run_timeout_seconds
        return Plan(actions=(StartRun(pod, run.run_id, run.input_digest, seconds),), due=due)
    return Plan(
        actions=(LearnImage(pod),) if observed.image_unknown and view.status is not None else (),
        wait=AwaitRun(pod.uid, run.run_id),
        due=due,
    )


def _overrun_at(observed: Observed, view: AgentView) -> datetime:
    """Say when to end what the agent should have ended; a new leader does not count its own absence."""
    status = observed.task.status
    started = view.seen_at if status is None or status.start_time is None else status.start_time
    seconds = observed.run_timeout_seconds + RUN_GRACE_SECONDS
    return max(started, view.seen_at) + timedelta(seconds=seconds)


def _stop(case: _Case, silent_until: datetime | None) -> Plan:
    run, pod, cancel_at = case.run, case.pod, case.view.cancel_at
    if case.phase is RunPhase.UNKNOWN:
        return Plan(actions=(RevokeRun(pod, run.run_id),), due=silent_until)
    if cancel_at is None:
        return Plan(actions=(CancelRun(pod, run.run_id),), due=silent_until)
    deadline = cancel_at + timedelta(seconds=CANCEL_SECONDS)
    if case.now < deadline:
        return Plan(wait=AwaitRun(pod.uid, run.run_id), due=deadline)
    end = _overrun(case.observed)
    if case.observed.task.spec.cancel:
        end = End(Reason.CANCELLED, "spec.cancel was set; the run did not stop and its pod is deleted.")
    return finish(case.observed, case.now, end)
