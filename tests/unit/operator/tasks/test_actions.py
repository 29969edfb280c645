"""What the answers of the doors mean: adopted, refused, lost, unreadable."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from harness.facts import DEPENDENT
from harness.process import Process
from harness.simulated_agents import SUCCESS, SimulatedAgent
from harness.simulation import FakeTime, Simulation, make_class, make_task
from sandyard_api.task import SandboxTask
from sandyard_api.task_status import TaskStatus
from sandyard_api.wire import ErrorCode, InstallPhase, InstallStatus, RunPhase, SupervisorPhase
from sandyard_operator.decide.pod import PodView, RefusalKind, pod_name
from sandyard_operator.ports import (
    AgentRefusedError,
    AgentUnreachableError,
    ForbiddenError,
    ForeignPolicy,
    NotFoundError,
    RefusedError,
    UnavailableError,
)
from sandyard_operator.tasks.places import key_of

INDEX = {"url": "http://index.test/simple/", "credentialsSecretRef": {"name": "netrc", "key": "k"}}


class Bench:
    """One process, one task, looked at step by step."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, index: bool = False) -> None:
        self._loop = loop
        self.time = FakeTime()
        self.sim = Simulation(self.time)
        self.sim.add_class(make_class(index=INDEX if index else None, allowSecretEnv=True))
        self.process = self.new_process()
        self.task = make_task()

    def new_process(self) -> Process:
        process = Process(self.sim, self.time, epoch=1)
        self._loop.run_until_complete(process.take_over())
        return process

    def create(self, **spec: Any) -> SandboxTask:
        self.task = self.sim.add_task(make_task(**spec))
        return self.task

    def look(self) -> None:
        self.process.deliver()
        self._loop.run_until_complete(self.process.hear(key_of(self.task)))
        self._loop.run_until_complete(self.process.look(key_of(self.task)))

    def look_until(self, phase: str) -> None:
        for _ in range(20):
            if self.status.phase == phase:
                return
            self.look()
            self.time.pass_seconds(0.5)
        raise AssertionError(f"not {phase}: {self.status}")

    @property
    def status(self) -> TaskStatus:
        return self.sim.status_of(self.task).status or TaskStatus()

    @property
    def pod(self) -> PodView:
        return next(iter(self.sim.pods.values()))

    @property
    def agent(self) -> SimulatedAgent:
        return self.sim.agents[self.pod.uid]


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture
def bench(loop: asyncio.AbstractEventLoop) -> Bench:
    return Bench(loop)


def refuse(call: str, error: Exception) -> Any:
    def hook(name: str) -> None:
        if name == call:
            raise error

    return hook


def test_a_pod_left_by_an_earlier_process_is_adopted(bench: Bench) -> None:
    bench.create()
    bench.look()
    made = bench.pod
    bench.process = bench.new_process()
    bench.process.conductor.world.pods.remove((made.namespace, made.name), "not this")
    bench.look_until("Running")
    assert bench.sim.calls["create_pod"] == 1
    assert bench.status.run is not None
    assert bench.status.run.pod_uid == made.uid


def test_a_pod_that_the_watch_has_not_shown_is_adopted_by_its_name(bench: Bench) -> None:
    task = bench.create()
    pod = bench._loop.run_until_complete(bench.sim.create_pod(task, make_class(), attempt=1))  # noqa: SLF001
    bench.process.seen_events = len(bench.sim.events) - 1
    bench.process.conductor.world.tasks.store(bench.sim.status_of(task))
    bench._loop.run_until_complete(bench.process.look(key_of(task)))  # noqa: SLF001
    assert bench.sim.calls["create_pod"] == 2
    assert bench.process.conductor.world.pod(task.metadata.uid, pod.uid) is not None


@pytest.mark.parametrize("forged", [{"signed": False}, {"owner_uid": "another"}, {"attempt": 7}])
def test_a_pod_that_only_looks_like_ours_is_passed_over(bench: Bench, forged: dict[str, Any]) -> None:
    task = bench.create()
    real = bench._loop.run_until_complete(bench.sim.create_pod(task, make_class(), attempt=1))  # noqa: SLF001
    bench.sim.pods[(real.namespace, real.name)] = replace(bench.pod, **forged)
    bench.sim.events.pop()
    bench.look_until("Running")
    assert bench.status.run is not None
    assert bench.status.run.pod_name == pod_name(task.metadata.uid, 2)
    assert bench.status.run.pod_uid != real.uid


def test_a_name_that_was_free_again_when_looked_at_is_tried_again(bench: Bench) -> None:
    task = bench.create()
    real = bench._loop.run_until_complete(bench.sim.create_pod(task, make_class(), attempt=1))  # noqa: SLF001
    bench.sim.events.pop()
    bench.sim.before = lambda call: bench.sim.remove_pod(real) if call == "get_pod" else None
    bench.look_until("Running")
    assert bench.status.run is not None
    assert bench.status.run.attempt == 1


def test_a_refused_pod_ends_the_task(bench: Bench) -> None:
    bench.sim.refuse_pods = RefusedError(RefusalKind.ADMISSION, "policy says no")
    bench.create()
    bench.look_until("Failed")
    assert bench.status.reason == "PodRejected"


def test_a_namespace_that_is_gone_leaves_the_task_waiting_for_its_own_end(bench: Bench) -> None:
    bench.sim.before = refuse("prepare_namespace", NotFoundError("namespace"))
    bench.create()
    bench.look()
    bench.look()
    assert bench.status.phase == "Starting"


def test_a_pod_gone_before_its_answer_came_is_known_to_be_gone(bench: Bench) -> None:
    bench.create()

    def after(call: str) -> None:
        if call == "create_pod":
            bench.sim.remove_pod(bench.pod)
            bench.process.deliver()

    bench.sim.after = after
    bench.look_until("Failed")
    assert bench.status.reason == "PodDeleted"


def test_a_secret_that_may_not_be_read_counts_as_not_there(bench: Bench) -> None:
    bench.sim.before = refuse("secret_value", ForbiddenError("no right"))
    bench.create(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])
    bench.look_until("Failed")
    assert bench.status.reason == "InputNotFound"
    assert "may not be read" in bench.status.message


def test_labels_of_a_namespace_are_read_where_the_class_selects_by_them(bench: Bench) -> None:
    bench.sim.add_class(make_class(allowedNamespaces={"matchLabels": {"team": "a"}}))
    bench.sim.labels = {"team": "a"}
    bench.create()
    bench.look_until("Running")


def test_a_policy_of_others_is_named(bench: Bench) -> None:
    bench.sim.policies = (ForeignPolicy(name="open-all"),)
    bench.create()
    bench.look_until("Failed")
    assert "open-all" in bench.status.message
    assert bench.sim.starts(bench.task) == 0


def test_inputs_that_arrive_as_others_end_the_start(bench: Bench) -> None:
    bench.create()
    bench.look()
    bench.agent.run = None
    bench.sim.send_bundle = lambda *_: done("another")  # type: ignore[method-assign]
    bench.look_until("Failed")
    assert bench.status.reason == "StartFailed"


async def done(value: str) -> str:
    return value


@pytest.mark.parametrize("code", [ErrorCode.NOT_READY, ErrorCode.REPLAYED, ErrorCode.STALE_EPOCH])
def test_an_answer_that_asks_for_patience_is_no_end(bench: Bench, code: ErrorCode) -> None:
    bench.create()
    bench.look()
    bench.sim.before = refuse("send_bundle", AgentRefusedError(code, "later"))
    bench.look()
    bench.sim.before = lambda _: None
    bench.look_until("Running")


def test_a_supervisor_lost_at_the_start_is_told_as_not_run(bench: Bench) -> None:
    bench.create()
    bench.look()
    bench.sim.before = refuse("start", AgentRefusedError(ErrorCode.NOT_READY, "the supervisor is lost"))
    bench.look_until("Failed")
    assert bench.status.reason == "StartFailed"
    assert "did not run" in bench.status.message
    assert bench.sim.starts(bench.task) == 0


def test_a_refused_revocation_leaves_it_open(bench: Bench) -> None:
    bench.create()
    bench.look()

    def before(call: str) -> None:
        if call in ("start", "revoke"):
            raise AgentRefusedError(ErrorCode.INTERNAL, "broken")

    bench.sim.before = before
    bench.look_until("Failed")
    assert bench.status.reason == "AgentLost"
    assert "may have run" in bench.status.message


def test_an_agent_that_cannot_be_told_does_not_keep_its_pod(bench: Bench) -> None:
    bench.create()
    bench.look_until("Running")
    bench.look()
    bench.agent.finish(SUCCESS)
    bench.sim.before = refuse("acknowledge", AgentUnreachableError("gone"))
    bench.look_until("Succeeded")
    bench.look()
    bench.look()
    assert not bench.sim.pods


def test_a_refused_acknowledgement_does_not_keep_it_either(bench: Bench) -> None:
    bench.create()
    bench.look_until("Running")
    bench.look()
    bench.agent.finish(SUCCESS)
    bench.sim.before = refuse("acknowledge", AgentRefusedError(ErrorCode.CONFLICT, "not finished"))
    bench.look_until("Succeeded")
    bench.look()
    assert not bench.sim.pods


def test_an_agent_refusing_a_listener_is_heard(bench: Bench) -> None:
    bench.create()
    bench.look_until("Running")
    bench.look()
    bench.sim.before = refuse("run_status", AgentRefusedError(ErrorCode.INTERNAL, "broken"))
    bench.look_until("Failed")
    assert bench.status.reason == "AgentLost"


def test_a_listener_asked_for_patience_has_it(bench: Bench) -> None:
    bench.create()
    bench.look_until("Running")
    bench.look()
    bench.sim.before = refuse("run_status", AgentRefusedError(ErrorCode.REPLAYED, "again"))
    bench.look()
    bench.look()
    assert bench.status.phase == "Running"


def test_a_class_learns_its_image_once_and_a_failure_costs_nothing(bench: Bench) -> None:
    bench.sim.before = refuse("write_class_status", UnavailableError("busy"))
    bench.create()
    bench.look_until("Running")
    bench.look()
    assert bench.status.phase == "Running"
    bench.sim.before = lambda _: None
    bench.time.pass_seconds(59)
    bench.look()
    assert bench.sim.calls["write_class_status"] == 0
    bench.time.pass_seconds(1)
    bench.look()
    bench.look()
    assert bench.sim.calls["write_class_status"] == 1
    assert bench.sim.classes["default"].status is not None


def test_nothing_is_learnt_from_an_agent_that_told_nothing(bench: Bench) -> None:
    bench.create()
    bench.look_until("Running")
    bench.process = bench.new_process()
    bench.look()
    assert bench.status.phase == "Running"


def installing(loop: asyncio.AbstractEventLoop) -> Bench:
    bench = Bench(loop, index=True)
    bench.sim.missing = ("six==1.17.0",)
    bench.sim.values[("netrc", "k")] = b"machine index.test login a password b"
    bench.create(code=DEPENDENT)
    return bench


def test_credentials_that_are_not_there_fail_the_install(loop: asyncio.AbstractEventLoop) -> None:
    bench = installing(loop)
    bench.sim.values.clear()
    bench.look_until("Failed")
    assert bench.status.reason == "IndexAuthFailed"
    assert bench.sim.calls["install"] == 0


def test_a_dead_index_proves_nothing(loop: asyncio.AbstractEventLoop) -> None:
    bench = installing(loop)
    bench.look_until("Installing")
    bench.agent.install = InstallStatus(phase=InstallPhase.SUCCEEDED)
    bench.sim.index_address = ""
    for _ in range(10):
        bench.look()
        bench.time.pass_seconds(1)
    assert bench.status.phase == "Installing"
    assert bench.sim.calls["probe"] == 0
    bench.sim.index_address = "192.0.2.10"
    bench.look_until("Running")
    assert bench.sim.calls["probe"] == 2
    assert bench.agent.started_under == ["closed"]


def test_an_installer_that_is_still_there_proves_nothing(loop: asyncio.AbstractEventLoop) -> None:
    bench = installing(loop)
    bench.look_until("Installing")
    bench.agent.install = InstallStatus(phase=InstallPhase.SUCCEEDED)
    bench.agent.installer_gone = False
    bench.look()
    bench.look()
    assert bench.status.phase == "Installing"
    bench.time.pass_seconds(31)
    bench.look()
    assert bench.status.reason == "IsolationUnavailable"


def test_a_restart_in_the_middle_of_an_install_goes_on_from_there(loop: asyncio.AbstractEventLoop) -> None:
    bench = installing(loop)
    bench.look_until("Installing")
    bench.process = bench.new_process()
    bench.agent.install = InstallStatus(phase=InstallPhase.SUCCEEDED)
    bench.look_until("Running")
    assert bench.sim.calls["probe"] == 2
    assert bench.agent.started_under == ["closed"]


def test_a_supervisor_lost_before_the_claim_is_heard_of(bench: Bench) -> None:
    bench.create()
    bench.look()
    bench.agent.supervisor = SupervisorPhase.LOST
    bench.look_until("Failed")
    assert bench.status.reason == "AgentLost"


def test_a_restart_during_the_run_collects_the_result(bench: Bench) -> None:
    bench.create()
    bench.look_until("Running")
    bench.look()
    bench.agent.finish(SUCCESS)
    bench.process = bench.new_process()
    bench.look_until("Succeeded")
    assert bench.sim.starts(bench.task) == 1


def test_a_run_that_was_never_heard_of_is_started_by_the_next_leader(bench: Bench) -> None:
    bench.create()
    bench.sim.before = refuse("start", AgentUnreachableError("cut"))
    bench.look_until("Running")
    assert bench.sim.starts(bench.task) == 0
    bench.sim.before = lambda _: None
    bench.process = bench.new_process()
    bench.look()
    assert bench.sim.starts(bench.task) == 1
    assert bench.agent.run is not None
    assert bench.agent.run.phase is RunPhase.RUNNING


def test_a_task_replaced_under_its_name_is_another(bench: Bench) -> None:
    first = bench.create()
    bench.look()
    bench.sim.tasks.pop(("ns", "t"))
    bench.sim.add_task(make_task(code="print(2)").model_copy(update={"metadata": renamed(first)}))
    bench.process.seen_events = len(bench.sim.events)
    bench.look()
    assert bench.process.conductor.world.task(key_of(first)) is None


def renamed(task: SandboxTask) -> Any:
    return task.metadata.model_copy(update={"uid": "uid-other"})
