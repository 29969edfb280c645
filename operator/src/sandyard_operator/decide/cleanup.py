"""After the end: the agent is told that its result is stored, pods go, and later the task itself.

Everything here rests on facts that never change back: a final status, a W1, a deletion.
"""

from datetime import datetime, timedelta

from sandyard_operator.decide.facts import Observed
from sandyard_operator.decide.plan import Acknowledge, Action, DeletePod, DeleteTask, Plan
from sandyard_operator.decide.pod import PodView


def remove(observed: Observed) -> Plan:
    """Delete the pods of a task that is being deleted; the task itself goes by itself."""
    return Plan(actions=tuple(DeletePod(pod) for pod in observed.pods if not _going(observed, pod)))


def clean_up(observed: Observed, now: datetime) -> Plan:
    """Decide for a task that is finished."""
    actions: list[Action] = []
    for pod in observed.pods:
        if not _going(observed, pod):
            actions.extend(_acknowledgements(observed, pod))
            actions.append(DeletePod(pod))
    if actions:
        return Plan(actions=tuple(actions))
    return _expire(observed, now)


def _going(observed: Observed, pod: PodView) -> bool:
    return pod.deleting or pod.uid in observed.deleted


def _acknowledgements(observed: Observed, pod: PodView) -> tuple[Action, ...]:
    """Only the first try is worth it: a pod that does not answer goes without."""
    status = observed.task.status
    run = None if status is None else status.run
    view = observed.agents.get(pod.uid)
    if run is None or run.pod_uid != pod.uid or pod.agent.exit_code is not None or view is None:
        return ()
    if view.acknowledged or view.unreachable_at is not None or view.refusal is not None:
        return ()
    return (Acknowledge(pod, run.run_id),)


def _expire(observed: Observed, now: datetime) -> Plan:
    status = observed.task.status
    if status is None or status.completion_time is None:
        return Plan()
    end = status.completion_time + timedelta(seconds=observed.ttl_seconds)
    return Plan(actions=(DeleteTask(),)) if now >= end else Plan(due=end)
