"""Agents in memory that keep their promises: one run per pod ever, epochs, revocations, idempotent answers."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandyard_api.names import NETWORK_INSTALLING
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
from sandyard_operator.decide.pod import PodView
from sandyard_operator.ports import AgentRefusedError, AgentUnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandyard_api.task import SandboxTask


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
    installer_gone: bool = True
    forgetful: bool = False  # a broken one: accepts and remembers nothing
    started_under: list[str] = field(default_factory=list)  # network label at each start
    starts: list[str] = field(default_factory=list)  # run ids that were really started

    def finish(self, result: RunResult) -> None:
        """End the run."""
        assert self.run is not None
        self.run = self.run.model_copy(update={"phase": RunPhase.FINISHED, "result": result})


SUCCESS = RunResult(outcome=Outcome.EXITED, exit_code=0, stdout=Stream(text="1\n", bytes=2), run_milliseconds=5)


class SimulatedAgents:
    """The door to all agents; the pods and tasks are those of the simulated API server."""

    def __init__(self) -> None:
        self.tasks: dict[tuple[str, str], SandboxTask] = {}
        self.pods: dict[tuple[str, str], PodView] = {}
        self.agents: dict[str, SimulatedAgent] = {}
        self.unclaimed_starts: list[str] = []
        self.calls: Counter[str] = Counter()
        self.before: Callable[[str], None] = lambda _: None
        self.after: Callable[[str], None] = lambda _: None

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
        agent = self._agent(pod, "probe")
        assert request.host
        stored = self.pods[(pod.namespace, pod.name)]
        connected = stored.network == NETWORK_INSTALLING
        return ProbeReply(connected=connected, error="ETIMEDOUT", installer_gone=agent.installer_gone)

    async def start(self, pod: PodView, run_id: str, request: StartRequest) -> RunStatus:
        agent = self._agent(pod, "start")
        if request.epoch < agent.epoch:
            raise AgentRefusedError(ErrorCode.STALE_EPOCH, "a newer leader has spoken")
        agent.epoch = request.epoch
        if run_id in agent.revoked:
            raise AgentRefusedError(ErrorCode.REVOKED, "this run was revoked")
        if agent.forgetful:
            return self._known(agent, run_id)
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

    def _enter(self, call: str) -> None:
        self.before(call)
        self.calls[call] += 1

    def _leave(self, call: str) -> None:
        self.after(call)
