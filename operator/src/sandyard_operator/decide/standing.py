"""Where a task stands, read off its status alone: conditions are the truth, the phase is for people."""

from enum import StrEnum
from typing import Final

from sandyard_api.conditions import Condition, ConditionStatus
from sandyard_api.reasons import TaskCondition
from sandyard_api.task import SandboxTask
from sandyard_api.task_status import TaskStatus

# Reasons of Scheduled=False
QUEUED: Final = "Queued"
WAITING_FOR_QUOTA: Final = "QuotaExceeded"
STARTING: Final = "Starting"


class Standing(StrEnum):
    """A task's relation to the queue of its namespace and class."""

    FRESH = "fresh"  # nothing was written yet
    QUEUED = "queued"
    ADMITTED = "admitted"  # holds a place until it is finished
    FINISHED = "finished"


def condition(status: TaskStatus | None, kind: TaskCondition) -> Condition | None:
    """Return the condition of that type."""
    if status is None:
        return None
    return next((c for c in status.conditions if c.type == kind), None)


def standing_of(task: SandboxTask) -> Standing:
    """Tell where a task stands."""
    finished = condition(task.status, TaskCondition.FINISHED)
    if finished is not None and finished.status is ConditionStatus.TRUE:
        return Standing.FINISHED
    scheduled = condition(task.status, TaskCondition.SCHEDULED)
    if scheduled is None:
        return Standing.FRESH
    return Standing.QUEUED if scheduled.reason == QUEUED else Standing.ADMITTED


def waits_for_quota(task: SandboxTask) -> bool:
    """Tell whether a task holds a place but quota is taken by others."""
    scheduled = condition(task.status, TaskCondition.SCHEDULED)
    return scheduled is not None and scheduled.reason == WAITING_FOR_QUOTA
