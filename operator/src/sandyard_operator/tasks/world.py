"""The cluster as last seen: tasks, pods, classes, and the indexes that decisions ask.

Fed by watch events, by the answers to own writes and by full lists. Tells which keys a change concerns;
decides nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from sandyard_api.reasons import TaskCondition, TaskPhase
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask, TaskSpec
from sandyard_api.task_status import TaskStatus
from sandyard_operator.decide.pod import PodView
from sandyard_operator.decide.standing import Standing, condition, standing_of
from sandyard_operator.drive.cache import Cache, Identity
from sandyard_operator.ports import Change, Key
from sandyard_operator.tasks.places import Places, bucket_of, key_of

Phases: TypeAlias = Counter[TaskPhase]
LearnedAt: TypeAlias = dict[tuple[str, int], datetime]  # class uid and generation: status last written


def _version(text: str) -> int:
    """Read a resourceVersion: the API server promises that they compare as numbers."""
    return int(text) if text.isdecimal() else 0


def _identify_task(task: SandboxTask) -> Identity[tuple[str, str]]:
    metadata = task.metadata
    name = (metadata.namespace, metadata.name)
    return Identity(name, metadata.uid, _version(metadata.resource_version))


def _slim(task: SandboxTask) -> SandboxTask:
    """Keep of a finished task what its cleanup and its time to live need: scripts and results weigh the most."""
    if standing_of(task) is not Standing.FINISHED or task.status is None:
        return task
    spec, status = task.spec, task.status
    finished = condition(status, TaskCondition.FINISHED)
    kept_spec = TaskSpec.model_construct(
        sandbox_class_name=spec.sandbox_class_name,
        cancel=spec.cancel,
        ttl_seconds_after_finished=spec.ttl_seconds_after_finished,
    )
    kept_status = TaskStatus(
        phase=status.phase,
        reason=status.reason,
        conditions=() if finished is None else (finished.model_copy(update={"message": ""}),),
        run=status.run,
        completion_time=status.completion_time,
        timings=status.timings,
    )
    metadata = task.metadata.model_copy(update={"labels": {}, "annotations": {}})
    return task.model_copy(update={"metadata": metadata, "spec": kept_spec, "status": kept_status})


def _identify_pod(pod: PodView) -> Identity[tuple[str, str]]:
    return Identity((pod.namespace, pod.name), pod.uid, _version(pod.resource_version))


def _identify_class(sandbox_class: SandboxClass) -> Identity[str]:
    metadata = sandbox_class.metadata
    return Identity(metadata.name, metadata.uid, _version(metadata.resource_version))


class World:
    """Caches and indexes; ``concerned`` is called with each key that a change may matter to."""

    def __init__(self, concerned: Callable[[Key], None], pod_gone: Callable[[Key, PodView], None]) -> None:
        self._concerned = concerned
        self._pod_gone = pod_gone
        self.tasks: Cache[tuple[str, str], SandboxTask] = Cache(_identify_task, keep=_slim)
        self.pods: Cache[tuple[str, str], PodView] = Cache(_identify_pod)
        self.classes: Cache[str, SandboxClass] = Cache(_identify_class)
        self.places = Places(has_pod=lambda uid: bool(self._pods.get(uid)))
        self.learned: LearnedAt = {}
        self.phases: Phases = Counter()
        self._keys: dict[str, Key] = {}  # of known tasks, by uid
        self._pods: defaultdict[str, dict[str, PodView]] = defaultdict(dict)  # ours, by owner uid, then uid
        self.tasks.listen(self._task_changed)
        self.pods.listen(self._pod_changed)
        self.classes.listen(self._class_changed)

    def take(self, change: Change) -> None:
        """Take a watch event."""
        value = change.value
        if isinstance(value, SandboxTask):
            if change.gone:
                self.tasks.remove((value.metadata.namespace, value.metadata.name), value.metadata.uid)
            else:
                self.tasks.store(value)
        elif isinstance(value, PodView):
            if change.gone:
                self.pods.remove((value.namespace, value.name), value.uid)
            else:
                self.pods.store(value)
        elif change.gone:
            self.classes.remove(value.metadata.name, value.metadata.uid)
        else:
            self.classes.store(value)

    def task(self, key: Key) -> SandboxTask | None:
        """Return this incarnation of a task."""
        task = self.tasks.get((key.namespace, key.name))
        return task if task is not None and task.metadata.uid == key.uid else None

    def pods_of(self, uid: str) -> tuple[PodView, ...]:
        """Return the pods of ours whose controller is the task of that uid."""
        return tuple(self._pods.get(uid, {}).values())

    def pod(self, owner_uid: str, uid: str) -> PodView | None:
        """Return one of a task's pods."""
        return self._pods.get(owner_uid, {}).get(uid)

    def every_key(self) -> tuple[Key, ...]:
        """Return all known keys."""
        return tuple(self._keys.values())

    def orphans(self) -> tuple[PodView, ...]:
        """Return the pods of ours whose task is not there; certain when pods were listed before tasks."""
        owners = self._pods.keys() - self._keys.keys()
        return tuple(pod for uid in owners for pod in self._pods[uid].values() if not pod.deleting)

    def _task_changed(self, old: SandboxTask | None, new: SandboxTask | None) -> None:
        self.places.change(old, new)
        self._count(old, -1)
        self._count(new, +1)
        if new is not None:
            key = key_of(new)
            self._keys[key.uid] = key
            self._concerned(key)
        elif old is not None:
            key = key_of(old)
            self._keys.pop(key.uid, None)
            self._concerned(key)
        if old is not None:
            self._wake_next(old)
            if standing_of(old) is Standing.ADMITTED:
                for waiting in self.places.held_up(old.metadata.namespace):
                    self._concerned(waiting)

    def _count(self, task: SandboxTask | None, by: int) -> None:
        if task is not None and task.status is not None and task.status.phase is not None:
            self.phases[task.status.phase] += by

    def _wake_next(self, task: SandboxTask) -> None:
        """Ask for those whose turn it may be now."""
        namespace, class_name = bucket_of(task)
        sandbox_class = self.classes.get(class_name)
        if sandbox_class is not None:
            free = sandbox_class.spec.queue.max_running - self.places.admitted((namespace, class_name))
            for key in self.places.first_waiting((namespace, class_name), max(0, free)):
                self._concerned(key)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        pod = new or old
        if pod is None or not (pod.signed or self.pod(pod.owner_uid, pod.uid)):
            return  # never was ours; one that was is followed to its end even when somebody changed it
        key = self._keys.get(pod.owner_uid)
        if new is not None:
            self._pods[pod.owner_uid][pod.uid] = new
        else:
            self._pods[pod.owner_uid].pop(pod.uid, None)
            if not self._pods[pod.owner_uid]:
                del self._pods[pod.owner_uid]
            if key is not None:
                self._pod_gone(key, pod)
            for waiting in self.places.held_up(pod.namespace):
                self._concerned(waiting)
        if key is not None:
            self._concerned(key)

    def _class_changed(self, old: SandboxClass | None, new: SandboxClass | None) -> None:
        sandbox_class = new or old
        if sandbox_class is not None:
            for key in self.places.unfinished(sandbox_class.metadata.name):
                self._concerned(key)
