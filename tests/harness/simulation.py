"""The core's doors in memory: an API server with versions and lost answers, and agents that keep their promises.

Only for tests of ``decide``, ``drive`` and ``tasks``: nothing here stands in for Kubernetes anywhere else. No call
ever suspends, so a test may run each coroutine to its end by itself (``now_done``).
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sandyard_api.names import NETWORK_CLOSED, NETWORK_INSTALLING
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_api.wire import (
    MAX_WAIT_SECONDS,
    AgentStatus,
    Bundle,
    ErrorCode,
    InstallPhase,
    InstallRequest,
    InstallStatus,
    Isolation,
    Outcome,
    Package,
    ProbeReply,
    ProbeRequest,
    RequirementsReply,
    RequirementsRequest,
    RunPhase,
    RunResult,
    RunStatus,
    StartRequest,
    Stream,
    SupervisorPhase,
)
from sandyard_operator.decide.pod import PodPhase, PodView, RefusalKind, pod_name
from sandyard_operator.ports import (
    AgentRefusedError,
    AgentUnreachableError,
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
T = TypeVar("T")


def now_done(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a simulated call suspended")


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


@dataclass
class SimulatedAgent:
    """What one pod's agent and supervisor keep; survives every operator."""

    pod_uid: str
    python: str = "3.13.5"
    missing: tuple[str, ...] = ()
    supervisor: SupervisorPhase = SupervisorPhase.READY
    reachable: bool = True
    isolation: Isolation = field(default_factory=lambda: Isolation(seccomp=True, landlock_abi=6))
    digest: str = ""
    install: InstallStatus = field(default_factory=lambda: InstallStatus(phase=InstallPhase.NONE))
    run: RunStatus | None = None
    revoked: set[str] = field(default_factory=set)
    epoch: int = 0
    started_under: list[str] = field(default_factory=list)  # network label at each start
    starts: list[str] = field(default_factory=list)  # run ids that were really started

    def finish(self, result: RunResult) -> None:
        """End the run."""
        assert self.run is not None
        self.run = self.run.model_copy(update={"phase": RunPhase.FINISHED, "result": result})


SUCCESS = RunResult(
    outcome=Outcome.EXITED, exit_code=0, stdout=Stream(text="1\n", bytes=2), run_milliseconds=5
)


class Simulation:
    """Both doors over one state. ``before`` and ``after`` hooks may raise: nothing done, or answer lost."""

    def __init__(self, time: FakeTime) -> None:
        self.time = time
        self.tasks: dict[tuple[str, str], SandboxTask] = {}
        self.pods: dict[tuple[str, str], PodView] = {}
        self.classes: dict[str, SandboxClass] = {}
        self.agents: dict[str, SimulatedAgent] = {}
        self.values: dict[tuple[str, str], bytes] = {}
        self.labels: dict[str, str] = {}
        self.policies: tuple[ForeignPolicy, ...] = ()
        self.index_address = "192.0.2.10"
        self.refuse_pods: RefusedError | None = None
        self.events: list[Change] = []
        self.calls: Counter[str] = Counter()
        self.emitted: list[str] = []
        self.finished_history: dict[str, SandboxTask] = {}
        self.run_history: dict[str, Any] = {}
        self.before: Callable[[str], None] = lambda _: None
        self.after: Callable[[str], None] = lambda _: None
        self.pods_come_up = True
        self.missing: tuple[str, ...] = ()
        self.unclaimed_starts: list[str] = []
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
        self._enter(f"config_map_value {namespace}")
        return self.values.get((name, key))

    async def secret_value(self, namespace: str, name: str, key: str) -> bytes | None:
        self._enter(f"secret_value {namespace}")
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
        self._enter(f"prepare_namespace {namespace} {sandbox_class.metadata.name}")

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
        self._enter(f"foreign_policies {pod.namespace}")
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
        self._enter(f"index_reachable {host} {port}")
        return self.index_address

    # --- the agents --------------------------------------------------------------------------------------

    def _agent(self, pod: PodView, call: str, *, wait: float = 0) -> SimulatedAgent:
        assert wait <= MAX_WAIT_SECONDS
        self._enter(call)
        agent = self.agents.get(pod.uid)
        if agent is None or not agent.reachable:
            raise AgentUnreachableError(pod.name)
        return agent

    async def status(self, pod: PodView, *, wait: float) -> AgentStatus:
        agent = self._agent(pod, "status", wait=wait)
        return AgentStatus(
            pod_uid=pod.uid,
            version="0",
            python=agent.python,
            supervisor=agent.supervisor,
            isolation=agent.isolation,
            bundle_digest=agent.digest,
            install=agent.install,
            run=agent.run,
            packages=(Package(name="numpy", version="2.3"),),
        )

    async def send_bundle(self, pod: PodView, bundle: Bundle) -> str:
        agent = self._agent(pod, "send_bundle")
        if agent.run is None:
            agent.digest = Bundle.decode(bundle.encode()).digest
        self._leave("send_bundle")
        return agent.digest

    async def requirements(self, pod: PodView, request: RequirementsRequest) -> RequirementsReply:
        agent = self._agent(pod, "requirements")
        return RequirementsReply(
            missing=tuple(r for r in request.requirements if r in agent.missing),
            python=agent.python,
            python_satisfied="3.99" not in request.requires_python,
        )

    async def install(self, pod: PodView, request: InstallRequest) -> InstallStatus:
        agent = self._agent(pod, "install")
        if agent.install.phase is InstallPhase.NONE:
            agent.install = InstallStatus(phase=InstallPhase.RUNNING, installer_gone=False)
        assert request.index.url
        self._leave("install")
        return agent.install

    async def install_status(self, pod: PodView, *, wait: float) -> InstallStatus:
        return self._agent(pod, "install_status", wait=wait).install

    async def probe(self, pod: PodView, request: ProbeRequest) -> ProbeReply:
        self._agent(pod, "probe")
        assert request.host
        stored = self.pods[(pod.namespace, pod.name)]
        return ProbeReply(connected=stored.network == NETWORK_INSTALLING, error="ETIMEDOUT")

    async def start(self, pod: PodView, run_id: str, request: StartRequest) -> RunStatus:
        agent = self._agent(pod, "start")
        if request.epoch < agent.epoch:
            raise AgentRefusedError(ErrorCode.STALE_EPOCH, "a newer leader has spoken")
        agent.epoch = request.epoch
        if run_id in agent.revoked:
            raise AgentRefusedError(ErrorCode.REVOKED, "this run was revoked")
        if agent.run is None:
            if request.input_digest != agent.digest:
                raise AgentRefusedError(ErrorCode.CONFLICT, "other inputs are staged")
            agent.run = RunStatus(
                run_id=run_id,
                phase=RunPhase.RUNNING,
                input_digest=agent.digest,
                isolation=agent.isolation,
            )
            agent.starts.append(run_id)
            self._check_claim(pod, run_id)
            agent.started_under.append(self.pods[(pod.namespace, pod.name)].network)
        if agent.run.run_id != run_id:
            raise AgentRefusedError(ErrorCode.CONFLICT, "another run was accepted")
        self._leave("start")
        return agent.run

    async def run_status(self, pod: PodView, run_id: str, *, wait: float) -> RunStatus:
        return self._known(self._agent(pod, "run_status", wait=wait), run_id)

    async def cancel(self, pod: PodView, run_id: str) -> RunStatus:
        agent = self._agent(pod, "cancel")
        status = self._known(agent, run_id)
        if status.phase is RunPhase.RUNNING:
            agent.finish(RunResult(outcome=Outcome.CANCELLED, stdout=Stream(text="part", bytes=4)))
        self._leave("cancel")
        return self._known(agent, run_id)

    async def revoke(self, pod: PodView, run_id: str) -> RunStatus:
        agent = self._agent(pod, "revoke")
        if agent.run is None:
            agent.revoked.add(run_id)
        self._leave("revoke")
        return self._known(agent, run_id)

    async def acknowledge(self, pod: PodView, run_id: str) -> RunStatus:
        agent = self._agent(pod, "acknowledge")
        self._leave("acknowledge")
        return self._known(agent, run_id).model_copy(update={"acknowledged": True})

    def _check_claim(self, pod: PodView, run_id: str) -> None:
        """W1 must be stored, or the task be gone, whatever the caller believes."""
        for task in self.tasks.values():
            if task.metadata.uid == pod.owner_uid:
                run = None if task.status is None else task.status.run
                if run is None or (run.pod_uid, run.run_id) != (pod.uid, run_id):
                    self.unclaimed_starts.append(run_id)

    @staticmethod
    def _known(agent: SimulatedAgent, run_id: str) -> RunStatus:
        if run_id in agent.revoked:
            return RunStatus(run_id=run_id, phase=RunPhase.REVOKED)
        if agent.run is None or agent.run.run_id != run_id:
            return RunStatus(run_id=run_id, phase=RunPhase.UNKNOWN)
        return agent.run

    # --- inside ------------------------------------------------------------------------------------------

    def _enter(self, call: str) -> None:
        self.before(call)
        self.calls[call.split()[0]] += 1

    def _leave(self, call: str) -> None:
        self.after(call)

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
