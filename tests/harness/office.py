"""A conductor at work over the simulated doors: real workers and waits, calls that suspend, polls that hold."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from harness.process import Records
from harness.simulation import FakeTime, Simulation
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_api.task_status import TaskStatus
from sandyard_api.wire import RunPhase, RunStatus
from sandyard_operator.decide.pod import PodView
from sandyard_operator.drive.clock import SteadyClock
from sandyard_operator.drive.leadership import Leadership
from sandyard_operator.tasks.conductor import Conductor
from sandyard_operator.tasks.sweep import Sweep

DEADLINE_SECONDS = 20.0
POLL_SECONDS = 0.005


class SlowSimulation(Simulation):
    """Suspends in each write, so that workers interleave; a run is polled until it ends or the test lets go."""

    def __init__(self, time: FakeTime) -> None:
        super().__init__(time)
        self.hold = asyncio.Event()  # pods are made while it is set
        self.hold.set()

    async def write_task_status(self, task: SandboxTask, status: Mapping[str, Any]) -> SandboxTask:
        await asyncio.sleep(0)
        written = await super().write_task_status(task, status)
        await asyncio.sleep(0)
        return written

    async def create_pod(self, task: SandboxTask, sandbox_class: SandboxClass, *, attempt: int) -> PodView:
        await self.hold.wait()
        await asyncio.sleep(0)
        return await super().create_pod(task, sandbox_class, attempt=attempt)

    async def run_status(self, pod: PodView, run_id: str, *, wait: float) -> RunStatus:
        deadline = time.monotonic() + wait
        while True:
            status = await super().run_status(pod, run_id, wait=wait)
            if status.phase is not RunPhase.RUNNING or time.monotonic() > deadline:
                return status
            await asyncio.sleep(POLL_SECONDS)


@dataclass
class Office:
    """What a test sees of a conductor at work."""

    simulation: SlowSimulation
    conductor: Conductor
    leadership: Leadership
    records: Records
    sweep: Sweep
    delivered: int = 0

    def deliver(self) -> None:
        """Let all events reach the caches."""
        for change in self.simulation.events[self.delivered :]:
            self.conductor.world.take(change)
        self.delivered = len(self.simulation.events)

    def status(self, task: SandboxTask) -> TaskStatus:
        """Return a task's status as stored."""
        return self.simulation.status_of(task).status or TaskStatus()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(POLL_SECONDS)

    async def until_phase(self, task: SandboxTask, phase: str) -> None:
        """Wait until a task is in a phase."""
        await self.until(lambda: self.status(task).phase == phase)


def new_office() -> Office:
    """Return an office whose conductor does not work yet."""
    clock = SteadyClock()
    simulation = SlowSimulation(FakeTime(clock.now()))
    leadership = Leadership(clock.monotonic)
    records = Records()
    conductor = Conductor(
        cluster=simulation,
        agents=simulation,
        recorder=records,
        leadership=leadership,
        clock=clock,
        operator_namespace="sandyard",
        jitter=lambda: 0.0,
        salt=lambda: "salt",
    )
    sweep = Sweep(cluster=simulation, conductor=conductor, monotonic=clock.monotonic)
    return Office(simulation, conductor, leadership, records, sweep)


@asynccontextmanager
async def at_work(office: Office, *, workers: int = 8) -> AsyncIterator[Office]:
    """Let a conductor work, with events delivered as they come."""

    async def deliver() -> None:
        while True:
            office.deliver()
            await asyncio.sleep(POLL_SECONDS)

    office.leadership.granted(epoch=1, until=float("inf"))
    await office.sweep.once()
    office.conductor.take_over(1)
    tasks = [asyncio.create_task(office.conductor.work()) for _ in range(workers)]
    tasks.append(asyncio.create_task(deliver()))
    try:
        yield office
    finally:
        await office.conductor.listening.close()
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
