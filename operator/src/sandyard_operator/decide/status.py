"""A task's status at each of its few writes, built whole from what is known.

Conditions carry the state; phase, reason and message are derived from them in the same breath. A
condition's lastTransitionTime moves only when its status does. What comes from a pod is clipped to what the
schema takes.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sandyard_api.conditions import Condition, ConditionStatus
from sandyard_api.limits import MESSAGE_CHARACTERS, PACKAGES, WARNINGS
from sandyard_api.observed import Isolation, Package
from sandyard_api.reasons import Reason, TaskCondition, TaskPhase
from sandyard_api.task import SandboxTask
from sandyard_api.task_status import (
    STREAM_CHARACTERS,
    TRACEBACK_CHARACTERS,
    Artifact,
    Run,
    Stream,
    TaskResult,
    TaskStatus,
    Timings,
)
from sandyard_api.wire import InstallStatus, RunResult
from sandyard_api.wire import Isolation as ToldIsolation
from sandyard_api.wire import Package as ToldPackage
from sandyard_api.wire import Stream as ToldStream
from sandyard_operator.decide.ends import End, Ran
from sandyard_operator.decide.facts import AgentView, Observed
from sandyard_operator.decide.judge import Accepted, Rejected
from sandyard_operator.decide.pod import PodView
from sandyard_operator.decide.standing import QUEUED, STARTING, WAITING_FOR_QUOTA, condition

TRUE: Final = ConditionStatus.TRUE
FALSE: Final = ConditionStatus.FALSE
WORD_CHARACTERS: Final = 253  # of a short word in a status
SENTENCE_CHARACTERS: Final = 1024  # of a warning or a type's name
MILLISECONDS: Final = 1000
SEEN_AT_ONCE: Final = timedelta(seconds=1.5)  # of creation: whoever sees it later was not there


def dump(status: TaskStatus) -> Mapping[str, Any]:
    """Return the status as it is written: camelCase, without absent fields."""
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)


def queued(observed: Observed, accepted: Accepted, now: datetime) -> TaskStatus:
    """Say that it is accepted and waits for a place."""
    message = f"Waiting for one of {observed.queue.max_running} places."
    status = _accept(observed, accepted, now)
    return _with_condition(status, TaskCondition.SCHEDULED, FALSE, QUEUED, message, now).model_copy(
        update={"phase": TaskPhase.QUEUED, "reason": "", "message": message}
    )


def admitted(observed: Observed, accepted: Accepted, now: datetime) -> TaskStatus:
    """Say that it has a place; its pod is made next."""
    status = _accept(observed, accepted, now)
    timings = Timings(queue_milliseconds=_milliseconds(_born(observed), now))
    if status.timings is not None and status.timings.queue_milliseconds is not None:
        timings = status.timings
    message = "The pod is being made."
    return _with_condition(status, TaskCondition.SCHEDULED, FALSE, STARTING, message, now).model_copy(
        update={"phase": TaskPhase.STARTING, "reason": "", "message": message, "timings": timings}
    )


def waiting_for_quota(observed: Observed, accepted: Accepted, why: str, now: datetime) -> TaskStatus:
    """Say that it has a place, but others hold the namespace's quota."""
    message = f"Waiting for quota: {why}"[:MESSAGE_CHARACTERS]
    status = _accept(observed, accepted, now)
    return _with_condition(status, TaskCondition.SCHEDULED, FALSE, WAITING_FOR_QUOTA, message, now).model_copy(
        update={"phase": TaskPhase.QUEUED, "reason": WAITING_FOR_QUOTA, "message": message}
    )


def installing(observed: Observed, pod: PodView, view: AgentView, now: datetime) -> TaskStatus:
    """Say that packages are being installed, with the network open for that."""
    message = "Packages are being installed."
    status = _scheduled(_draft(observed.task), pod, now)
    return _with_condition(status, TaskCondition.INSTALLED, FALSE, "Installing", message, now).model_copy(
        update={
            "phase": TaskPhase.INSTALLING,
            "reason": "",
            "message": message,
            "timings": _timings(status, view, now),
        }
    )


def claimed(observed: Observed, accepted: Accepted, pod: PodView, view: AgentView, now: datetime) -> TaskStatus:
    """Name the pod and the run that may start (W1), and everything that is known before they do."""
    task = observed.task
    status = _scheduled(_accept(observed, accepted, now), pod, now)
    installed = view.install if view.install is not None and view.install.packages else None
    why = ("Installed", "Packages are in place, the network is cut.") if installed else ("Satisfied", "")
    status = _with_condition(status, TaskCondition.INSTALLED, TRUE, why[0], why[1], now)
    told = None if view.requirements is None else view.requirements.satisfied
    packages = installed.packages if installed else (told or ())
    return status.model_copy(
        update={
            "phase": TaskPhase.RUNNING,
            "reason": "",
            "message": "",
            "run": Run(
                pod_name=pod.name,
                pod_uid=pod.uid,
                attempt=pod.attempt,
                run_id=f"{task.metadata.uid}-{pod.attempt}",
                input_digest=view.staged_digest,
            ),
            "warm": False,
            "image": pod.image or accepted.image,
            "start_time": now,
            "timings": _timings(status, view, now),
            "packages": tuple(_package(package) for package in packages[:PACKAGES]),
            "lock_sha256": (installed.lock_sha256 or None) if installed else None,
            "isolation": None if view.status is None else _isolation(view.status.isolation, pod),
        }
    )


def finished(
    observed: Observed,
    now: datetime,
    end: End,
    *,
    ran: Ran | None,
    installed: InstallStatus | None,
) -> TaskStatus:
    """Tell the end (W2). It is never changed after."""
    status = _draft(observed.task)
    message = end.message[:MESSAGE_CHARACTERS]
    if condition(status, TaskCondition.ACCEPTED) is None and isinstance(observed.verdict, Rejected):
        status = _with_condition(status, TaskCondition.ACCEPTED, FALSE, end.reason, message, now)
    status = _with_condition(status, TaskCondition.FINISHED, TRUE, end.reason, message, now)
    good = TRUE if end.reason is Reason.SUCCEEDED else FALSE
    status = _with_condition(status, TaskCondition.SUCCEEDED, good, end.reason, message, now)
    changes: dict[str, Any] = {
        "phase": end.reason.phase,
        "reason": end.reason,
        "message": message,
        "completion_time": now,
        "timings": _final_timings(observed, status, ran, now),
    }
    if ran is not None:
        changes |= _told_at_the_end(status, ran)
    if installed is not None:
        text = installed.stderr[-STREAM_CHARACTERS:]
        changes["result"] = TaskResult(stderr=Stream(text=text, bytes=len(text.encode())))
    return status.model_copy(update=changes)


def _draft(task: SandboxTask) -> TaskStatus:
    status = task.status or TaskStatus()
    return status.model_copy(update={"observed_generation": task.metadata.generation})


def _accept(observed: Observed, accepted: Accepted, now: datetime) -> TaskStatus:
    status = _with_condition(
        _draft(observed.task), TaskCondition.ACCEPTED, TRUE, "Accepted", "The class allows it.", now
    )
    return status.model_copy(
        update={
            "code_sha256": accepted.code_sha256 or status.code_sha256,
            "class_generation": accepted.class_generation,
            "warnings": tuple(text[:SENTENCE_CHARACTERS] for text in accepted.warnings[:WARNINGS]),
        }
    )


def _scheduled(status: TaskStatus, pod: PodView, now: datetime) -> TaskStatus:
    message = f"Pod {pod.name} is ready."
    return _with_condition(status, TaskCondition.SCHEDULED, TRUE, "PodReady", message, now).model_copy(
        update={"node_name": pod.node_name or None}
    )


def _with_condition(  # noqa: PLR0913, PLR0917 - a condition's own fields
    status: TaskStatus, kind: TaskCondition, value: ConditionStatus, reason: str, message: str, now: datetime
) -> TaskStatus:
    old = condition(status, kind)
    since = old.last_transition_time if old is not None and old.status is value else now
    new = Condition(
        type=kind,
        status=value,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=status.observed_generation,
    )
    others = tuple(c for c in status.conditions if c.type != kind)
    return status.model_copy(update={"conditions": (*others, new)})


def _timings(status: TaskStatus, view: AgentView, now: datetime) -> Timings:
    """Add what is known before the run: the pod's start and the install."""
    timings = status.timings or Timings()
    changes: dict[str, int] = {}
    if timings.start_milliseconds is None:
        changes["start_milliseconds"] = _milliseconds(view.seen_at, view.ready_at or now)
    if view.install_at is not None:
        changes["install_milliseconds"] = _milliseconds(view.install_at, now)
    return timings.model_copy(update=changes)


def _final_timings(observed: Observed, status: TaskStatus, ran: Ran | None, now: datetime) -> Timings:
    timings = status.timings or Timings()
    changes = {}
    if ran is not None:
        changes["run_milliseconds"] = max(0, ran.result.run_milliseconds)
    timings = timings.model_copy(update=changes)
    parts = (
        timings.queue_milliseconds,
        timings.start_milliseconds,
        timings.install_milliseconds,
        timings.run_milliseconds,
    )
    whole = _milliseconds(_born(observed), now)
    return timings.model_copy(update={"total_milliseconds": max(whole, sum(part or 0 for part in parts))})


def _born(observed: Observed) -> datetime:
    """Say when the task was created: its stamp has whole seconds, the moment it was seen more."""
    created = observed.task.metadata.creation_timestamp
    return observed.first_seen if timedelta() <= observed.first_seen - created < SEEN_AT_ONCE else created


def _milliseconds(since: datetime, until: datetime) -> int:
    return max(0, round((until - since).total_seconds() * MILLISECONDS))


def _told_at_the_end(status: TaskStatus, ran: Ran) -> dict[str, Any]:
    """Return what only the end tells: the result, the image as resolved, what was in force, late warnings."""
    warnings = (*status.warnings, *(text[:SENTENCE_CHARACTERS] for text in ran.result.warnings))
    return {
        "result": _result(ran.result),
        "warnings": warnings[:WARNINGS],
        "image": ran.pod.image or status.image,
        "node_name": ran.pod.node_name or status.node_name,
        "isolation": _isolation(ran.state.isolation, ran.pod),
    }


def _result(result: RunResult) -> TaskResult:
    return TaskResult(
        exit_code=result.exit_code,
        signal=result.signal[:WORD_CHARACTERS],
        error_type=result.error_type[:SENTENCE_CHARACTERS],
        error_message=result.error_message[:TRACEBACK_CHARACTERS],
        traceback=result.traceback[-TRACEBACK_CHARACTERS:],
        stdout=_stream(result.stdout),
        stderr=_stream(result.stderr),
        artifacts=tuple(
            Artifact(path=a.path, bytes=a.bytes, sha256=a.sha256, media_type=a.media_type) for a in result.artifacts
        ),
    )


def _stream(told: ToldStream) -> Stream:
    return Stream(text=told.text[:STREAM_CHARACTERS], bytes=told.bytes, truncated=told.truncated, sha256=told.sha256)


def _package(told: ToldPackage) -> Package:
    return Package(name=told.name, version=told.version, sha256=told.sha256 or None)


def _isolation(told: ToldIsolation, pod: PodView) -> Isolation:
    return Isolation(
        network=told.network,
        seccomp=told.seccomp,
        landlock_abi=told.landlock_abi,
        user_namespace=told.user_namespace,
        runtime_class=told.runtime_class or pod.runtime_class,
    )
