"""Into the queue and out of it: judge, then a place, a wait, or a refusal.

A place is taken by one status write, before any pod is made, so what a stopped or replaced operator had in
mind never adds to what runs. Those accepted keep their wait, whoever comes later with an earlier uid.
"""

from datetime import datetime, timedelta
from typing import assert_never

from sandyard_api.reasons import Reason, TaskCondition
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.ends import DID_NOT_RUN, End
from sandyard_operator.decide.facts import Observed
from sandyard_operator.decide.finish import finish
from sandyard_operator.decide.judge import Accepted, NeedsInputs, NeedsNamespace, Rejected
from sandyard_operator.decide.plan import Plan, ReadInputs, ReadNamespace, StatusStep, WriteStatus
from sandyard_operator.decide.standing import Standing, condition
from sandyard_operator.decide.status import admitted, dump, queued


def admit(observed: Observed, standing: Standing, now: datetime) -> Plan:
    """Decide for a task that holds no place."""
    match observed.verdict:
        case NeedsNamespace():
            return Plan(actions=(ReadNamespace(),))
        case Rejected(end=end):
            return finish(observed, now, end)
        case NeedsInputs() | None:
            if standing is Standing.QUEUED and not _has_place(observed):
                return _keep_waiting(observed, now)
            return Plan(actions=(ReadInputs(),))
        case Accepted() as accepted:
            if _has_place(observed):
                status = admitted(observed, accepted, now)
                return Plan(actions=(WriteStatus(StatusStep.ADMITTED, dump(status)),))
            if standing is Standing.QUEUED:
                return _keep_waiting(observed, now)
            return _enter_queue(observed, accepted, now)
    assert_never(observed.verdict)


def _has_place(observed: Observed) -> bool:
    return observed.place.waiting_before < _free(observed)


def _free(observed: Observed) -> int:
    limits = observed.queue
    return max(0, limits.max_running - observed.place.admitted)


def _enter_queue(observed: Observed, accepted: Accepted, now: datetime) -> Plan:
    limits = observed.queue
    if observed.place.waiting_taken >= _free(observed) + limits.max_queued:
        return finish(
            observed,
            now,
            End(Reason.QUEUE_FULL, f"{_full(observed)} {DID_NOT_RUN}"),
        )
    return Plan(actions=(WriteStatus(StatusStep.QUEUED, dump(queued(observed, accepted, now))),))


def _full(observed: Observed) -> str:
    limits, name = observed.queue, observed.task.spec.sandbox_class_name
    return (
        f"{limits.max_running} tasks of class {name} run in a namespace and {limits.max_queued} wait; "
        "create it again when some have ended."
    )


def _keep_waiting(observed: Observed, now: datetime) -> Plan:
    deadline = queue_deadline(observed.task)
    if deadline is None or now < deadline:
        return Plan(due=deadline)
    seconds = observed.task.spec.queue_timeout_seconds
    return finish(observed, now, End(Reason.QUEUE_TIMEOUT, f"No place was free within {seconds} s. {DID_NOT_RUN}"))


def queue_deadline(task: SandboxTask) -> datetime | None:
    """Return when a task has waited too long, counted from when it was accepted."""
    accepted = condition(task.status, TaskCondition.ACCEPTED)
    if task.spec.queue_timeout_seconds == 0 or accepted is None:
        return None
    return accepted.last_transition_time + timedelta(seconds=task.spec.queue_timeout_seconds)
