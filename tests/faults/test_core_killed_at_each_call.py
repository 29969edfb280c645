"""The operator is killed before or after its Nth call to the API server or an agent, for every N.

Over simulated doors, so that all N of several scenarios take seconds; the same is done with real processes on
the cluster. A second operator takes over each time: nothing is lost, nothing runs twice, no pod is left.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.facts import DEPENDENT
from harness.process import Process
from harness.simulated_agents import SUCCESS
from harness.simulation import FakeTime, Simulation, make_class, make_task
from sandyard_api.names import NETWORK_CLOSED
from sandyard_api.wire import InstallPhase, InstallStatus, RunPhase
from sandyard_operator.decide.standing import Standing, standing_of
from sandyard_operator.ports import AgentUnreachableError, UnsureError
from sandyard_operator.tasks.places import key_of

ROUNDS = 60
SCENARIOS: dict[str, dict[str, Any]] = {
    "plain": {"code": "print(1)"},
    "with dependencies": {"code": DEPENDENT},
    "inputs elsewhere": {"codeFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
    "gone after its end": {"code": "print(1)", "ttlSecondsAfterFinished": 1},
}


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Scenario:
    """One task from its creation to its end, with one fault on the way."""

    spec: dict[str, Any]
    loop: asyncio.AbstractEventLoop
    time: FakeTime = field(default_factory=FakeTime)
    epoch: int = 0
    calls: int = 0
    faults: int = 0

    def __post_init__(self) -> None:
        self.sim = Simulation(self.time)
        self.sim.missing = ("six==1.17.0",)
        self.sim.values[("c", "k")] = b"print(1)\n"
        self.sim.add_class(make_class(index={"url": "http://index.test/simple/"}))
        self.task = self.sim.add_task(make_task(**self.spec))
        self.process = self.new_process()

    def new_process(self) -> Process:
        """Begin anew with nothing but what the cluster and the agents tell."""
        self.epoch += 1
        process = Process(self.sim, self.time, epoch=self.epoch)
        self.loop.run_until_complete(process.take_over())
        return process

    def run(self) -> None:
        """Carry the task to its end."""
        for _ in range(ROUNDS):
            if self.over:
                return
            try:
                self._look()
            except Killed:
                self.process = self.new_process()
            self._let_agents_go_on()
            self.time.pass_seconds(1)
        raise AssertionError(f"not over: {self.sim.tasks}")

    @property
    def over(self) -> bool:
        """Tell whether nothing is left to do."""
        stored = self.sim.tasks.get(("ns", "t"))
        ended = stored is None or standing_of(stored) is Standing.FINISHED
        expires = "ttlSecondsAfterFinished" in self.spec
        return ended and not self.sim.pods and not (expires and stored is not None)

    def _look(self) -> None:
        self.process.deliver()
        key = key_of(self.task)
        self.loop.run_until_complete(self.process.hear(key))
        self.loop.run_until_complete(self.process.look(key))

    def _let_agents_go_on(self) -> None:
        for agent in self.sim.agents.values():
            if agent.install.phase is InstallPhase.RUNNING:
                agent.install = InstallStatus(phase=InstallPhase.SUCCEEDED)
            if agent.run is not None and agent.run.phase is RunPhase.RUNNING:
                agent.finish(SUCCESS)

    def check(self) -> None:
        """Nothing lost, nothing twice, nothing left."""
        assert self.sim.starts(self.task) == 1
        assert not self.sim.unclaimed_starts
        assert not self.sim.pods
        assert {n for agent in self.sim.agents.values() for n in agent.started_under} == {NETWORK_CLOSED}
        last = self.sim.finished_history[self.task.metadata.uid].status
        assert last is not None
        assert last.reason == "Succeeded"


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Yield a loop that the test runs by hand."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def calls_of(spec: dict[str, Any], loop: asyncio.AbstractEventLoop) -> int:
    """Return how many calls the task takes when all goes well."""
    scenario = Scenario(spec, loop)

    def count(_: str) -> None:
        scenario.calls += 1

    scenario.sim.before = count
    scenario.run()
    scenario.check()
    return scenario.calls


@pytest.mark.parametrize("fault", ["killed before", "killed after", "answer lost"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_whenever_it_happens_the_next_one_goes_on(name: str, fault: str, loop: asyncio.AbstractEventLoop) -> None:
    total = calls_of(SCENARIOS[name], loop)
    assert total > 10
    for number in range(1, total + 1):
        scenario = Scenario(SCENARIOS[name], loop)
        inflict(scenario, fault, number)
        scenario.run()
        scenario.check()
        assert scenario.faults == 1 or fault != "killed before"


def inflict(scenario: Scenario, fault: str, number: int) -> None:
    """Have the fault happen at the call of that number, once."""

    def before(_: str) -> None:
        scenario.calls += 1
        if fault == "killed before" and scenario.calls == number:
            scenario.faults += 1
            raise Killed

    def after(call: str) -> None:
        if scenario.calls == number and not scenario.faults and fault != "killed before":
            scenario.faults += 1
            if fault == "killed after":
                raise Killed
            agents = ("send_bundle", "install", "start", "cancel", "revoke", "acknowledge")
            raise AgentUnreachableError(call) if call in agents else UnsureError(call)

    scenario.sim.before, scenario.sim.after = before, after
