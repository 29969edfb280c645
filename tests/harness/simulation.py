"""The core's doors in memory: an API server with versions and lost answers, and agents that keep their promises.

Only for tests of ``decide``, ``drive`` and ``tasks``: nothing here stands in for Kubernetes anywhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from harness.simulated_agents import SimulatedAgent, SimulatedAgents
from sandyard_api.names import NETWORK_CLOSED
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.pod import PodPhase, PodView, RefusalKind, pod_name
from sandyard_operator.ports import (
    AlreadyExistsError,
    Change,
    ConflictError,
    ForeignPolicy,
    NotFoundError,
    ObjectKind,
    RefusedError,
)

START = datetime(2030, 1, 1, tzinfo=UTC)
DIGEST = "registry.test/runtime@sha256:" + "a" * 64


@dataclass
class FakeTime:
    """Wall and monotonic time that only a test moves."""

    at: datetime = START

    def now(self) -> datetime:
        """Return the wall time."""
        return self.at

    def monotonic(self) -> float:
        """Return seconds since the start."""
        return (self.at - START).total_seconds()

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass."""
        self.at += timedelta(seconds=seconds)


def make_class(name: str = "default", **spec: Any) -> SandboxClass:
    """Return a class as the API server would store it."""
    return SandboxClass.model_validate(
        {
            "metadata": {
                "name": name,
                "uid": f"class-{name}",
                "resourceVersion": "1",
                "generation": 1,
                "creationTimestamp": START,
            },
            "spec": {"image": DIGEST} | spec,
        }
    )


def make_task(
    name: str = "t", *, namespace: str = "ns", created: datetime = START, version: int = 1, **spec: Any
) -> SandboxTask:
    """Return a task as the API server would store it."""
    spec = spec if {"code", "codeFrom"} & spec.keys() else {"code": "print(1)\n"} | spec
    return SandboxTask.model_validate(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"uid-{name}",
                "resourceVersion": str(version),
                "generation": 1,
                "creationTimestamp": created,
            },
            "spec": spec,
        }
    )


class Simulation(SimulatedAgents):
    """Both doors over one state. ``before`` and ``after`` hooks may raise: nothing done, or answer lost."""

    def __init__(self, time: FakeTime) -> None:
        super().__init__()
        self.time = time
        self.classes: dict[str, SandboxClass] = {}
        self.values: dict[tuple[str, str], bytes] = {}
        self.labels: dict[str, str] = {}
        self.policies: tuple[ForeignPolicy, ...] = ()
        self.index_address = "192.0.2.10"
        self.refuse_pods: RefusedError | None = None
        self.events: list[Change] = []
        self.emitted: list[str] = []
        self.finished_history: dict[str, SandboxTask] = {}
        self.run_history: dict[str, Any] = {}
        self.pods_come_up = True
        self.missing: tuple[str, ...] = ()
        self.owners_of_pods_ever: set[str] = set()
        self._version = 100

    # --- what a test does to the cluster -----------------------------------------------------------------

    def add_task(self, task: SandboxTask) -> SandboxTask:
        """Create a task."""
        return self._store_task(task)

    def add_class(self, sandbox_class: SandboxClass) -> None:
        """Create a class."""
        self.classes[sandbox_class.metadata.name] = sandbox_class
        self.events.append(Change(kind=ObjectKind.CLASS, value=sandbox_class, gone=False))

    def patch_spec(self, task: SandboxTask, **spec: Any) -> None:
        """Change a task's spec as a user may."""
        stored = self.tasks[(task.metadata.namespace, task.metadata.name)]
        metadata = stored.metadata.model_copy(update={"generation": stored.metadata.generation + 1})
        changed = stored.spec.model_copy(update=spec)
        self._store_task(stored.model_copy(update={"spec": changed, "metadata": metadata}))

    def remove_task(self, task: SandboxTask) -> None:
        """Delete a task at once; its pods are left to the garbage collector."""
        stored = self.tasks.pop((task.metadata.namespace, task.metadata.name), None)
        if stored is not None:
            self.events.append(Change(kind=ObjectKind.TASK, value=stored, gone=True))

    def change_pod(self, pod: PodView, **changes: Any) -> None:
        """Change what a pod shows."""
        self._store_pod(replace(self.pods[(pod.namespace, pod.name)], **changes))

    def remove_pod(self, pod: PodView) -> None:
        """Take a pod away at once."""
        stored = self.pods.pop((pod.namespace, pod.name), None)
        if stored is not None:
            self.agents[stored.uid].reachable = False
            self.events.append(Change(kind=ObjectKind.POD, value=stored, gone=True))

    def status_of(self, task: SandboxTask) -> SandboxTask:
        """Return a task as stored."""
        return self.tasks[(task.metadata.namespace, task.metadata.name)]

    def starts(self, task: SandboxTask) -> int:
        """Return how often the script of a task was really started."""
        return sum(
            len(agent.starts)
            for agent in self.agents.values()
            if any(run.startswith(task.metadata.uid) for run in agent.starts)
        )

    # --- the API server ----------------------------------------------------------------------------------

    async def get_task(self, namespace: str, name: str) -> SandboxTask | None:
        self._enter("get_task")
        return self.tasks.get((namespace, name))

    async def list_tasks(self) -> tuple[SandboxTask, ...]:
        self._enter("list_tasks")
        return tuple(self.tasks.values())

    async def get_pod(self, namespace: str, name: str) -> PodView | None:
        self._enter("get_pod")
        return self.pods.get((namespace, name))

    async def list_pods(self) -> tuple[PodView, ...]:
        self._enter("list_pods")
        return tuple(self.pods.values())

    async def get_class(self, name: str) -> SandboxClass | None:
        self._enter("get_class")
        return self.classes.get(name)

    async def list_classes(self) -> tuple[SandboxClass, ...]:
        self._enter("list_classes")
        return tuple(self.classes.values())

    async def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        self._enter("namespace_labels")
        return self.labels | {"kubernetes.io/metadata.name": namespace}

    async def config_map_value(self, namespace: str, name: str, key: str) -> bytes | None:
        assert namespace
        self._enter("config_map_value")
        return self.values.get((name, key))

    async def secret_value(self, namespace: str, name: str, key: str) -> bytes | None:
        assert namespace
        self._enter("secret_value")
        return self.values.get((name, key))

    async def write_task_status(self, task: SandboxTask, status: Mapping[str, Any]) -> SandboxTask:
        self._enter("write_task_status")
        stored = self.tasks.get((task.metadata.namespace, task.metadata.name))
        if stored is None:
            raise NotFoundError(task.metadata.name)
        same = stored.metadata.uid == task.metadata.uid
        if not same or stored.metadata.resource_version != task.metadata.resource_version:
            raise ConflictError(task.metadata.name)
        raw = stored.model_dump(mode="json", by_alias=True, exclude_none=True) | {"status": dict(status)}
        written = self._store_task(SandboxTask.model_validate(raw))
        self._check_immutable(written)
        self._leave("write_task_status")
        return written

    def _check_immutable(self, task: SandboxTask) -> None:
        uid, status = task.metadata.uid, task.status
        assert status is not None
        assert self.run_history.setdefault(uid, status.run) in (None, status.run), "run changed"
        self.run_history[uid] = status.run
        if any(c.type == "Finished" and c.status == "True" for c in status.conditions):
            first = self.finished_history.setdefault(uid, task)
            assert first.status == status, "a final status changed"

    async def write_class_status(self, sandbox_class: SandboxClass, status: Mapping[str, Any]) -> None:
        self._enter("write_class_status")
        raw = sandbox_class.model_dump(mode="json", by_alias=True, exclude_none=True)
        metadata = raw["metadata"] | {"resourceVersion": self._next_version()}
        self.add_class(SandboxClass.model_validate(raw | {"status": dict(status), "metadata": metadata}))

    async def delete_task(self, task: SandboxTask) -> None:
        self._enter("delete_task")
        self.remove_task(task)

    async def prepare_namespace(self, namespace: str, sandbox_class: SandboxClass) -> None:
        assert namespace
        assert sandbox_class.spec.image
        self._enter("prepare_namespace")

    async def create_pod(self, task: SandboxTask, sandbox_class: SandboxClass, *, attempt: int) -> PodView:
        self._enter("create_pod")
        name = pod_name(task.metadata.uid, attempt)
        if self.refuse_pods is not None:
            raise self.refuse_pods
        if (task.metadata.namespace, name) in self.pods:
            raise AlreadyExistsError(name)
        uid = f"pod-{self._next_version()}"
        up = self.pods_come_up
        pod = PodView(
            namespace=task.metadata.namespace,
            name=name,
            uid=uid,
            resource_version=self._next_version(),
            owner_uid=task.metadata.uid,
            owner_name=task.metadata.name,
            attempt=attempt,
            signed=True,
            created_at=self.time.now(),
            phase=PodPhase.RUNNING if up else PodPhase.PENDING,
            deleting=False,
            deletion_by_operator=False,
            network=NETWORK_CLOSED,
            node_name="node-1" if up else "",
            ip="192.0.2.1" if up else "",
            scheduled=up,
            image=sandbox_class.spec.image,
        )
        self.agents[uid] = SimulatedAgent(uid, missing=self.missing)
        self.owners_of_pods_ever.add(task.metadata.uid)
        pod = self._store_pod(pod)
        self._leave("create_pod")
        return pod

    async def set_network(self, pod: PodView, network: str) -> PodView:
        self._enter("set_network")
        stored = self.pods.get((pod.namespace, pod.name))
        if stored is None:
            raise NotFoundError(pod.name)
        if (stored.uid, stored.resource_version) != (pod.uid, pod.resource_version):
            raise ConflictError(pod.name)
        changed = self._store_pod(replace(stored, network=network))
        self._leave("set_network")
        return changed

    async def foreign_policies(self, pod: PodView) -> tuple[ForeignPolicy, ...]:
        assert pod.uid
        self._enter("foreign_policies")
        return self.policies

    async def delete_pod(self, pod: PodView) -> None:
        self._enter("delete_pod")
        stored = self.pods.get((pod.namespace, pod.name))
        if stored is not None and stored.uid == pod.uid:
            self.remove_pod(stored)
        self._leave("delete_pod")

    async def emit(self, task: SandboxTask, *, reason: str, message: str, warning: bool) -> None:
        self.emitted.append(f"{'Warning' if warning else 'Normal'} {reason} {task.metadata.name} {message}")

    async def index_reachable(self, host: str, port: int) -> str:
        assert host
        assert port
        self._enter("index_reachable")
        return self.index_address

    # --- inside ------------------------------------------------------------------------------------------

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)

    def _store_task(self, task: SandboxTask) -> SandboxTask:
        metadata = task.metadata.model_copy(update={"resource_version": self._next_version()})
        task = task.model_copy(update={"metadata": metadata})
        self.tasks[(metadata.namespace, metadata.name)] = task
        self.events.append(Change(kind=ObjectKind.TASK, value=task, gone=False))
        return task

    def _store_pod(self, pod: PodView) -> PodView:
        pod = replace(pod, resource_version=self._next_version())
        self.pods[(pod.namespace, pod.name)] = pod
        self.events.append(Change(kind=ObjectKind.POD, value=pod, gone=False))
        return pod


def quota_taken() -> RefusedError:
    """Return the refusal of a pod while others hold the quota."""
    return RefusedError(RefusalKind.QUOTA_TAKEN, "exceeded quota: q, requested: cpu=1")
