"""Two operators, crashes, lost answers, stale caches and pods that go, in any order: what must hold always.

The real ``decide`` and ``tasks`` run over simulated doors. A process may be cut off before any call, lose the
answer of any call, act on an old cache beside a newer leader, or begin anew with nothing.
"""

import asyncio
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness.process import Process
from harness.simulated_agents import SUCCESS, SimulatedAgent
from harness.simulation import FakeTime, Simulation, make_class, make_task, quota_taken
from sandyard_api.names import NETWORK_CLOSED
from sandyard_api.task import SandboxTask
from sandyard_api.wire import InstallPhase, InstallStatus, Outcome, Package, RunPhase, RunResult, SupervisorPhase
from sandyard_operator.decide.pod import ContainerView, PodPhase, PodView
from sandyard_operator.decide.standing import Standing, standing_of
from sandyard_operator.ports import AgentUnreachableError, UnavailableError, UnsureError
from sandyard_operator.tasks.places import key_of

MAX_TASKS = 4
HEALING_ROUNDS = 80
DEPENDENT = '# /// script\n# dependencies = ["six==1.17.0"]\n# ///\nimport six\n'
INVALID = "# /// script\nprint(1)\n"
AGENT_CALLS = frozenset(
    {
        "status",
        "send_bundle",
        "requirements",
        "install",
        "install_status",
        "probe",
        "start",
        "run_status",
        "cancel",
        "revoke",
        "acknowledge",
    }
)

SPECS: list[dict[str, Any]] = [
    {"code": "print(1)"},
    {"code": "print(1)", "retryPolicy": "OnInfrastructureFailure"},
    {"code": DEPENDENT},
    {"code": DEPENDENT, "retryPolicy": "OnInfrastructureFailure", "queueTimeoutSeconds": 50},
    {"code": INVALID},
    {"code": "print(1)", "cancel": True},
    {"codeFrom": {"configMapKeyRef": {"name": "absent", "key": "k"}}},
]


DEAD = ContainerView(started=True, exit_code=137, terminated_reason="Error")
LOSSES: dict[str, dict[str, Any]] = {
    "evicted": {"phase": PodPhase.FAILED, "status_reason": "Evicted"},
    "node": {"node_ready": False},
    "agent": {"agent": DEAD},
    "runner": {"runner": DEAD},
    "dying": {"deleting": True},
}
RESULTS = {
    "ok": SUCCESS,
    "fail": RunResult(outcome=Outcome.EXITED, exit_code=3),
    "lost": RunResult(outcome=Outcome.SUPERVISOR_LOST),
    "oom": RunResult(outcome=Outcome.OOM),
    "disk": RunResult(outcome=Outcome.DISK),
}
DISTURBANCES = ("restart", "sweep", "time", "cancel", "delete", "pods", "quota", "index", "pod", "way")


class Crash(BaseException):
    """The process is killed here."""


class Core(RuleBasedStateMachine):
    """Any interleaving."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.time = FakeTime()
        self.sim = Simulation(self.time)
        self.sim.missing = ("six==1.17.0",)
        self.epoch = 0
        self.tasks: list[SandboxTask] = []
        self.deleted: set[str] = set()
        self.processes: list[Process] = []

    @initialize(both_act=st.booleans(), places=st.integers(1, 2))
    def begin(self, both_act: bool, places: int) -> None:
        self.both_act = both_act
        self.places = places
        queue = {"maxRunning": places, "maxQueued": 2}
        index = {"url": "http://index.test/simple/"}
        self.sim.add_class(make_class(queue=queue, index=index))
        self.processes = [self._new_process()]
        if both_act:
            self.processes.append(self._new_process())

    # --- rules: what is likely is a rule of its own, what is rare shares one -----------------------------

    @precondition(lambda self: len(self.tasks) < MAX_TASKS)
    @rule(spec=st.sampled_from(SPECS))
    def create(self, spec: dict[str, Any]) -> None:
        name = f"t{len(self.tasks)}"
        self.tasks.append(self.sim.add_task(make_task(name, created=self.time.now(), **spec)))

    @precondition(lambda self: self.tasks)
    @rule(which=st.integers(0, 1))
    def a_quiet_moment(self, which: int) -> None:
        process = self._process(which)
        for key in self._keys():
            process.deliver()
            self._run(process.hear(key))
            self._run(process.look(key))
        self.time.pass_seconds(0.2)

    @precondition(lambda self: self.tasks)
    @rule(data=st.data(), which=st.integers(0, 1), events=st.integers(0, 4), hear=st.booleans())
    def look(self, data: st.DataObject, which: int, events: int, hear: bool) -> None:
        self._serve(data, which, events=events, hear=hear)

    @precondition(lambda self: self.tasks)
    @rule(
        data=st.data(),
        which=st.integers(0, 1),
        fault=st.sampled_from(["crash", "lost answer", "crash after", "unavailable"]),
        at=st.integers(0, 5),
    )
    def look_with_a_fault(self, data: st.DataObject, which: int, fault: str, at: int) -> None:
        calls = 0

        def before(call: str) -> None:
            nonlocal calls
            calls += 1
            if calls > at and fault == "crash":
                raise Crash
            if calls > at and fault == "unavailable":
                raise AgentUnreachableError(call) if call in AGENT_CALLS else UnavailableError(call)

        def after(call: str) -> None:
            if calls > at and fault == "crash after":
                raise Crash
            if calls > at and fault == "lost answer":
                raise AgentUnreachableError(call) if call in AGENT_CALLS else UnsureError(call)

        self.sim.before, self.sim.after = before, after
        crashed = False
        try:
            self._serve(data, which, events=9, hear=True)
        except Crash:
            crashed = True
        finally:
            self.sim.before = self.sim.after = lambda _: None
        if crashed:
            self.processes[which % len(self.processes)] = self._new_process()

    @precondition(lambda self: self.sim.pods)
    @rule(ending=st.sampled_from(["ok", "fail", "lost", "oom", "disk"]))
    def agents_get_on(self, ending: str) -> None:
        for pod in self.sim.pods.values():
            self._agent_gets_on(self.sim.agents[pod.uid], ending)

    @rule(data=st.data(), what=st.sampled_from(sorted(DISTURBANCES)), which=st.integers(0, 1))
    def a_disturbance(self, data: st.DataObject, what: str, which: int) -> None:
        match what:
            case "restart":
                self.processes[which % len(self.processes)] = self._new_process()
            case "sweep":
                self._run(self._process(which).sweep.once())
            case "time":
                self.time.pass_seconds(data.draw(st.sampled_from([15, 70, 400])))
            case "cancel" | "delete" if self.tasks:
                self._user_intervenes(data.draw(st.sampled_from(self.tasks)), what)
            case "pods":
                self.sim.pods_come_up = data.draw(st.booleans())
            case "quota":
                self.sim.refuse_pods = quota_taken() if data.draw(st.booleans()) else None
            case "index":
                self.sim.index_address = data.draw(st.sampled_from(["", "192.0.2.10"]))
            case "pod" | "way" if self.sim.pods:
                self._pod_suffers(self._a_pod(data), what, data)

    def _user_intervenes(self, task: SandboxTask, what: str) -> None:
        if what == "delete":
            self.deleted.add(task.metadata.uid)
            self.sim.remove_task(task)
        elif task.metadata.uid not in self.deleted:
            self.sim.patch_spec(task, cancel=True)

    def _agent_gets_on(self, agent: SimulatedAgent, ending: str) -> None:
        if agent.install.phase is InstallPhase.RUNNING:
            agent.install = InstallStatus(
                phase=InstallPhase.FAILED if ending == "fail" else InstallPhase.SUCCEEDED,
                reason="DependencyNotFound" if ending == "fail" else "",
                packages=(Package(name="six", version="1.17.0", sha256="a" * 64),),
            )
        elif agent.run is not None and agent.run.phase is RunPhase.RUNNING:
            agent.finish(RESULTS[ending])
        elif ending == "lost":
            agent.supervisor = SupervisorPhase.LOST

    def _pod_suffers(self, pod: PodView, what: str, data: st.DataObject) -> None:
        if what == "way":
            self.sim.agents[pod.uid].reachable = data.draw(st.booleans())
            return
        how = data.draw(st.sampled_from(["deleted", *LOSSES]))
        if how == "deleted":
            self.sim.remove_pod(pod)
            return
        self.sim.change_pod(pod, **LOSSES[how])
        if how in ("evicted", "agent", "node"):
            self.sim.agents[pod.uid].reachable = False

    # --- what must hold ------------------------------------------------------------------------------------

    @invariant()
    def no_script_starts_twice(self) -> None:
        for task in self.tasks:
            assert self.sim.starts(task) <= 1, f"{task.metadata.name} started twice"

    @invariant()
    def no_script_starts_without_its_claim_or_with_the_network_open(self) -> None:
        for agent in self.sim.agents.values():
            assert all(network == NETWORK_CLOSED for network in agent.started_under)
        assert not self.sim.unclaimed_starts

    @invariant()
    def nothing_is_made_for_what_is_not_valid(self) -> None:
        for task in self.tasks:
            valid = task.spec.code not in (None, INVALID) and not task.spec.cancel
            assert valid or task.metadata.uid not in self.sim.owners_of_pods_ever

    @invariant()
    def places_are_not_given_twice(self) -> None:
        if not self.both_act and self.processes:
            held = [t for t in self.sim.tasks.values() if standing_of(t) is Standing.ADMITTED]
            assert len(held) <= self.places

    def teardown(self) -> None:
        """Heal everything: then each task ends within bounded time, and nothing is left behind."""
        try:
            if self.processes:
                self._heal()
        finally:
            self.loop.close()

    def _heal(self) -> None:
        self.sim.pods_come_up = True
        self.sim.refuse_pods = None
        self.sim.index_address = "192.0.2.10"
        for _ in range(HEALING_ROUNDS):
            self.time.pass_seconds(5)
            for pod in list(self.sim.pods.values()):
                self._heal_pod(pod)
            for process in self.processes:
                process.deliver()
                for key in self._keys():
                    self._run(process.hear(key))
                    self._run(process.look(key))
            if self._all_done():
                break
        for task in self.sim.tasks.values():
            assert standing_of(task) is Standing.FINISHED, f"{task.metadata.name} does not end: {task.status}"
        self._run(self.processes[0].sweep.once())
        assert not self.sim.pods
        self.no_script_starts_twice()

    def _all_done(self) -> bool:
        done = all(standing_of(t) is Standing.FINISHED for t in self.sim.tasks.values())
        return done and not self.sim.pods

    def _heal_pod(self, pod: PodView) -> None:
        agent = self.sim.agents[pod.uid]
        if not pod.ip:
            self.sim.change_pod(pod, ip="192.0.2.1", phase=PodPhase.RUNNING, scheduled=True, node_name="n")
        if pod.deleting:
            self.sim.remove_pod(pod)
        if agent.install.phase is InstallPhase.RUNNING:
            agent.install = InstallStatus(phase=InstallPhase.SUCCEEDED)
        if agent.run is not None and agent.run.phase is RunPhase.RUNNING:
            agent.finish(SUCCESS)

    # --- inside --------------------------------------------------------------------------------------------

    def _serve(self, data: st.DataObject, which: int, *, events: int, hear: bool) -> None:
        process = self._process(which)
        process.deliver(events)
        key = data.draw(st.sampled_from(self._keys()))
        if hear:
            self._run(process.hear(key))
        self._run(process.look(key))

    def _keys(self) -> list[Any]:
        return [key_of(task) for task in self.tasks]

    def _process(self, which: int) -> Process:
        return self.processes[which % len(self.processes)]

    def _new_process(self) -> Process:
        self.epoch += 1
        process = Process(self.sim, self.time, epoch=self.epoch)
        self._run(process.take_over())
        return process

    def _a_pod(self, data: st.DataObject) -> PodView:
        return data.draw(st.sampled_from(list(self.sim.pods.values())))

    def _run(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(coroutine)


TestCore = Core.TestCase
TestCore.settings = settings(
    max_examples=300, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
