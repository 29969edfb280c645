"""One operator process over the simulated doors: its real conductor, looked at key by key as a test decides."""

from contextlib import suppress

from harness.simulation import FakeTime, Simulation
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.plan import Wait
from sandyard_operator.drive.clock import SteadyClock
from sandyard_operator.drive.leadership import Leadership
from sandyard_operator.ports import AgentRefusedError, AgentUnreachableError, Key, PortError
from sandyard_operator.tasks.conductor import Conductor
from sandyard_operator.tasks.listening import ask
from sandyard_operator.tasks.sweep import Sweep


class Records:
    """A recorder that remembers."""

    def __init__(self) -> None:
        self.actions: list[tuple[str, str]] = []
        self.ends: list[SandboxTask] = []

    def acted(self, action: str, *, seconds: float, error: str) -> None:
        """Take note of an action."""
        assert seconds >= 0
        self.actions.append((action, error))

    def finished(self, task: SandboxTask) -> None:
        """Take note of an end."""
        self.ends.append(task)


class Waits:
    """Stands for the background waits: holds what each key waits for, and asks when a test says so."""

    def __init__(self) -> None:
        self.wanted: dict[Key, Wait] = {}

    def listen(self, key: Key, wait: Wait | None) -> None:
        """Take note of the wait."""
        if wait is None:
            self.wanted.pop(key, None)
        else:
            self.wanted[key] = wait

    async def close(self) -> None:
        """Forget all waits."""
        self.wanted.clear()


class Process:
    """An operator process with caches of its own; events reach it when a test delivers them."""

    def __init__(self, simulation: Simulation, time: FakeTime, *, epoch: int) -> None:
        self.simulation = simulation
        self.records = Records()
        self.leadership = Leadership(time.monotonic)
        self.leadership.granted(epoch=epoch, until=float("inf"))
        clock = SteadyClock(wall=lambda: time.now().timestamp(), monotonic=time.monotonic)
        self.conductor = Conductor(
            cluster=simulation,
            agents=simulation,
            recorder=self.records,
            leadership=self.leadership,
            clock=clock,
            operator_namespace="sandyard",
            jitter=lambda: 0.5,
            salt=lambda: f"salt-{epoch}",
        )
        self.waits = Waits()
        self.conductor.listening = self.waits  # type: ignore[assignment]
        self.sweep = Sweep(cluster=simulation, conductor=self.conductor, monotonic=time.monotonic)
        self.seen_events = len(simulation.events)

    async def take_over(self) -> None:
        """Read everything and act from now on."""
        await self.sweep.once()
        epoch = self.leadership.epoch
        assert epoch is not None
        self.conductor.take_over(epoch)

    def deliver(self, count: int | None = None) -> None:
        """Let events reach the caches."""
        last = len(self.simulation.events)
        if count is not None:
            last = min(last, self.seen_events + count)
        for change in self.simulation.events[self.seen_events : last]:
            self.conductor.world.take(change)
        self.seen_events = last

    async def look(self, key: Key) -> None:
        """Serve a key once, errors included, as a worker does."""
        with suppress(PortError):
            await self.conductor.look_at(key)

    async def hear(self, key: Key) -> bool:
        """Let the key's wait get its answer."""
        wait = self.waits.wanted.get(key)
        pod = None if wait is None else self.conductor.world.pod(key.uid, wait.pod_uid)
        if wait is None or pod is None:
            return False
        try:
            news = await ask(self.simulation, wait, pod)
        except (AgentUnreachableError, AgentRefusedError) as error:
            return self.conductor.hear(key, wait.pod_uid, error)
        return self.conductor.hear(key, wait.pod_uid, news)
