"""From a place to the point of no return: a pod, its inputs, its packages, its isolation, then the claim.

Until the claim (W1) is written nothing of the user can start, so anything here may be repeated or begun
anew in another pod. Pods given up are not deleted here: that waits for a fact that cannot change back.
"""

from datetime import datetime, timedelta
from typing import Final, assert_never

from sandyard_api.reasons import Reason
from sandyard_api.task import RetryPolicy
from sandyard_api.wire import SupervisorPhase
from sandyard_operator.decide.admit import queue_deadline
from sandyard_operator.decide.ends import (
    DID_NOT_RUN,
    End,
    pod_deleted,
    pod_loss,
    python_unsatisfied,
    start_timeout,
)
from sandyard_operator.decide.facts import AgentView, Observed, Refusal
from sandyard_operator.decide.finish import finish
from sandyard_operator.decide.install import install
from sandyard_operator.decide.isolation import missing_isolation, needs_policies
from sandyard_operator.decide.judge import Accepted, NeedsInputs, NeedsNamespace, Rejected
from sandyard_operator.decide.plan import (
    AskRequirements,
    AwaitAgent,
    CheckPolicies,
    CreatePod,
    Emit,
    NextAttempt,
    Plan,
    ReadInputs,
    ReadNamespace,
    ReadPod,
    StageBundle,
    StatusStep,
    WriteStatus,
)
from sandyard_operator.decide.pod import PodView, RefusalKind
from sandyard_operator.decide.standing import waits_for_quota
from sandyard_operator.decide.status import admitted, claimed, dump, waiting_for_quota

ATTEMPTS: Final = 3  # pods one task may use up with retryPolicy OnInfrastructureFailure
NAMES: Final = 8  # pod names tried when others took ours
QUOTA_SECONDS: Final = 10.0  # between two tries while others hold the quota; a pod that goes wakes it earlier
ENDING_SECONDS: Final = 60.0  # a namespace that is being deleted takes this task along
SILENCE_SECONDS: Final = 30.0  # an agent that was ready and does not answer: before W1 another pod is cheap


def start(observed: Observed, now: datetime) -> Plan:
    """Decide for a task that holds a place and has no W1."""
    match observed.verdict:
        case NeedsNamespace():
            return Plan(actions=(ReadNamespace(),))
        case NeedsInputs() | None:
            return Plan(actions=(ReadInputs(),))
        case Rejected(end=end):
            return finish(observed, now, end)
        case Accepted() as accepted:
            pod = observed.current_pod
            if pod is None:
                return _without_pod(observed, accepted, now)
            return _with_pod(observed, accepted, pod, now)
    assert_never(observed.verdict)


def _without_pod(observed: Observed, accepted: Accepted, now: datetime) -> Plan:
    created = observed.created
    if created is not None:
        if created.uid not in observed.absent:
            return Plan(actions=(ReadPod(created.name, created.uid),))
        return _lost(observed, pod_deleted(observed.last_views.get(created.uid, created)), now)
    if observed.name_taken:
        return _next_name(observed, now)
    if observed.place.placed_before >= observed.queue.max_running:
        return Plan()  # more were admitted than may run: those that come first end first
    if observed.refusal is not None:
        return _refused(observed, accepted, observed.refusal, now)
    if observed.place.quota_before:
        return _wait_for_quota(observed, accepted, "another task waits for it", now, since=now)
    return Plan(actions=(CreatePod(observed.attempt),))


def _next_name(observed: Observed, now: datetime) -> Plan:
    if observed.attempt < NAMES:
        return Plan(actions=(NextAttempt(observed.attempt),))
    return finish(
        observed,
        now,
        End(
            Reason.POD_REJECTED,
            f"{NAMES} pod names of this task are taken by pods that the operator did not make; "
            f"delete them and create the task again. {DID_NOT_RUN}",
        ),
    )


def _refused(observed: Observed, accepted: Accepted, refusal: Refusal, now: datetime) -> Plan:
    match refusal.kind:
        case RefusalKind.QUOTA_TAKEN:
            if now >= refusal.at + timedelta(seconds=QUOTA_SECONDS):
                return Plan(actions=(CreatePod(observed.attempt),))
            return _wait_for_quota(observed, accepted, refusal.message, now, since=refusal.at)
        case RefusalKind.NAMESPACE_ENDING:
            return Plan(due=now + timedelta(seconds=ENDING_SECONDS))
        case RefusalKind.QUOTA_TOO_SMALL:
            reason = Reason.QUOTA_EXCEEDED
        case RefusalKind.ADMISSION | RefusalKind.INVALID:
            reason = Reason.POD_REJECTED
        case _:
            assert_never(refusal.kind)
    return finish(observed, now, End(reason, f"The pod was refused: {refusal.message} {DID_NOT_RUN}"))


def _wait_for_quota(observed: Observed, accepted: Accepted, why: str, now: datetime, *, since: datetime) -> Plan:
    deadline = queue_deadline(observed.task)
    if deadline is not None and now >= deadline:
        seconds = observed.task.spec.queue_timeout_seconds
        return finish(observed, now, End(Reason.QUEUE_TIMEOUT, f"No quota was free within {seconds} s. {DID_NOT_RUN}"))
    if not waits_for_quota(observed.task):
        status = waiting_for_quota(observed, accepted, why, now)
        return Plan(actions=(WriteStatus(StatusStep.PROGRESS, dump(status)),))
    again = since + timedelta(seconds=QUOTA_SECONDS)
    return Plan(due=again if deadline is None else min(again, deadline))


def _lost(observed: Observed, end: End, now: datetime) -> Plan:
    """Begin anew in another pod where the policy allows it: user code cannot have started without W1."""
    retry = observed.task.spec.retry_policy is RetryPolicy.ON_INFRASTRUCTURE_FAILURE
    if retry and observed.attempt < ATTEMPTS:
        event = Emit(end.reason, f"Attempt {observed.attempt} lost its pod; another is made.", warning=True)
        return Plan(actions=(event, NextAttempt(observed.attempt)))
    return finish(observed, now, End(end.reason, f"{end.message} {DID_NOT_RUN}"))


def _with_pod(observed: Observed, accepted: Accepted, pod: PodView, now: datetime) -> Plan:
    loss = pod_loss(pod)
    if not pod.signed:
        loss = End(Reason.POD_REJECTED, f"Somebody changed pod {pod.name} after it was made.")
    if loss is not None:
        return _lost(observed, loss, now)
    view = observed.view_of(pod, now)
    if view.refusal is not None:
        message = f"The agent refused: {view.refusal.message} ({view.refusal.code})."
        return _lost(observed, End(Reason.START_FAILED, message), now)
    if not view.ready:
        return _until_ready(observed, accepted, pod, view, now)
    if view.unreachable_at is not None and now >= view.unreachable_at + timedelta(seconds=SILENCE_SECONDS):
        return _lost(observed, End(Reason.AGENT_LOST, "The agent stopped answering."), now)
    lacking = missing_isolation(observed, view)
    if lacking is not None:
        return finish(observed, now, lacking)
    return _prepare(observed, accepted, pod, view, now)


def _until_ready(observed: Observed, accepted: Accepted, pod: PodView, view: AgentView, now: datetime) -> Plan:
    if view.status is not None and view.status.supervisor is SupervisorPhase.LOST:
        return _lost(observed, End(Reason.AGENT_LOST, "The supervisor ended before the start."), now)
    seconds = observed.task.spec.start_timeout_seconds
    deadline = view.seen_at + timedelta(seconds=seconds)
    if now >= deadline:
        return finish(observed, now, start_timeout(pod, seconds))
    if waits_for_quota(observed.task):
        return Plan(actions=(WriteStatus(StatusStep.PROGRESS, dump(admitted(observed, accepted, now))),))
    return Plan(wait=AwaitAgent(pod.uid) if pod.ip else None, due=deadline)


def _prepare(observed: Observed, accepted: Accepted, pod: PodView, view: AgentView, now: datetime) -> Plan:
    if not view.staged_digest or view.staged_digest != observed.bundle_digest:
        return Plan(actions=(StageBundle(pod),))
    if accepted.requirements or accepted.requires_python:
        if view.requirements is None:
            return Plan(actions=(AskRequirements(pod, accepted.requirements, accepted.requires_python),))
        if not view.requirements.python_satisfied:
            return finish(observed, now, python_unsatisfied(accepted.requires_python, view.requirements.python))
        plan = install(observed, accepted, pod, view, now)
        if plan is not None:
            return plan
    if view.foreign_policies is None and needs_policies(observed):
        return Plan(actions=(CheckPolicies(pod),))
    return Plan(actions=(WriteStatus(StatusStep.CLAIM, dump(claimed(observed, accepted, pod, view, now))),))
