"""The running core: begins when the lease is gained, repairs by full lists, ends when told."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from harness.facts import pod
from harness.office import Office, new_office
from harness.simulated_agents import SUCCESS, SimulatedAgent
from harness.simulation import make_class, make_task
from sandyard_operator.decide.pod import RefusalKind
from sandyard_operator.drive.clock import SteadyClock
from sandyard_operator.ports import Change, RefusedError, UnavailableError
from sandyard_operator.tasks import engine as engine_module
from sandyard_operator.tasks import sweep as sweep_module
from sandyard_operator.tasks.engine import Engine


class Feed:
    """The simulation's events, as they come."""

    def __init__(self, office: Office) -> None:
        self._office = office

    async def changes(self) -> AsyncIterator[Change]:
        """Yield changes for ever."""
        sent = 0
        while True:
            for change in self._office.simulation.events[sent:]:
                sent += 1
                yield change
            await asyncio.sleep(0.002)


def new_engine(office: Office) -> Engine:
    return Engine(
        conductor=office.conductor,
        sweep=office.sweep,
        leadership=office.leadership,
        clock=SteadyClock(),
        workers=4,
    )


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_module, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(engine_module, "GAIN_RETRY_SECONDS", 0.01)


async def test_a_task_goes_from_its_event_to_its_end_and_the_engine_stops_when_told() -> None:
    office = new_office()
    engine = new_engine(office)
    office.simulation.add_class(make_class())
    running = asyncio.create_task(engine.run(Feed(office)))
    office.leadership.granted(epoch=1, until=float("inf"))
    task = office.simulation.add_task(make_task())
    await office.until_phase(task, "Running")
    await office.until(lambda: office.simulation.starts(task))
    for agent in office.simulation.agents.values():
        agent.finish(SUCCESS)
    await office.until_phase(task, "Succeeded")
    assert engine.health().ailments == ()
    assert office.sweep.complete
    engine.stop()
    async with asyncio.timeout(5):
        await running


async def test_a_standby_reads_everything_and_does_nothing() -> None:
    office = new_office()
    engine = new_engine(office)
    office.simulation.add_class(make_class())
    task = office.simulation.add_task(make_task())
    running = asyncio.create_task(engine.run(Feed(office)))
    await office.until(lambda: office.sweep.complete)
    await asyncio.sleep(0.05)
    assert office.status(task).phase is None
    office.leadership.granted(epoch=1, until=float("inf"))
    await office.until_phase(task, "Running")
    office.leadership.lost()
    await office.until(lambda: not office.conductor.may_act)
    engine.stop()
    await running


async def test_it_does_not_act_before_a_full_list_was_read() -> None:
    office = new_office()
    engine = new_engine(office)
    office.simulation.add_class(make_class())
    failures = [UnavailableError("busy")] * 5

    def before(call: str) -> None:
        if call == "list_pods" and failures:
            raise failures.pop()
        assert not failures or not call.startswith(("write", "create"))

    office.simulation.before = before
    task = office.simulation.add_task(make_task())
    office.leadership.granted(epoch=1, until=float("inf"))
    running = asyncio.create_task(engine.run(Feed(office)))
    await office.until_phase(task, "Running")
    assert not failures
    engine.stop()
    await running


async def test_what_ends_a_part_ends_it_all() -> None:
    office = new_office()

    class Broken(Feed):
        async def changes(self) -> AsyncIterator[Change]:
            raise OSError("the watches ended")
            yield

    with pytest.raises(ExceptionGroup) as caught:
        await new_engine(office).run(Broken(office))
    assert isinstance(caught.value.exceptions[0], OSError)


@pytest.mark.parametrize("answers", [True, False])
async def test_stopping_waits_for_what_is_under_way_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, *, answers: bool
) -> None:
    monkeypatch.setattr(engine_module, "DRAIN_SECONDS", 0.2)
    office = new_office()
    engine = new_engine(office)
    office.simulation.add_class(make_class())
    office.simulation.hold = asyncio.Event()
    running = asyncio.create_task(engine.run(Feed(office)))
    office.leadership.granted(epoch=1, until=float("inf"))
    office.simulation.add_task(make_task())
    await office.until(lambda: office.simulation.calls["prepare_namespace"])
    engine.stop()
    await asyncio.sleep(0.01)
    if answers:
        office.simulation.hold.set()
    async with asyncio.timeout(5):
        await running
    assert bool(office.simulation.pods) is answers


async def test_a_full_list_finds_lost_deletions_and_orphans() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    gone = office.simulation.add_task(make_task("gone"))
    office.deliver()
    office.simulation.tasks.clear()
    orphan = pod(owner_uid="uid-nobody", owner_name="nobody", uid="orphan")
    office.simulation.pods[(orphan.namespace, orphan.name)] = orphan
    office.simulation.agents["orphan"] = SimulatedAgent("orphan")
    office.leadership.granted(epoch=1, until=float("inf"))
    office.conductor.take_over(1)
    await office.sweep.once()
    assert office.conductor.world.tasks.get(("ns", "gone")) is None
    assert not office.simulation.pods
    assert gone.metadata.uid not in {key.uid for key in office.conductor.world.every_key()}


@pytest.mark.parametrize("why", ["standby", "unreadable", "there after all"])
async def test_a_pod_is_no_orphan_while_its_task_may_be_there(why: str) -> None:
    office = new_office()
    orphan = pod(owner_uid="uid-t", owner_name="t", uid="orphan")
    office.simulation.pods[(orphan.namespace, orphan.name)] = orphan
    if why != "standby":
        office.leadership.granted(epoch=1, until=float("inf"))
        office.conductor.take_over(1)

    def before(call: str) -> None:
        if call == "get_task" and why == "unreadable":
            raise RefusedError(RefusalKind.INVALID, "not as this version knows it")
        if call == "get_task":
            office.simulation.add_task(make_task())

    office.simulation.before = before
    await office.sweep.once()
    assert office.simulation.pods


async def test_a_list_that_fails_is_read_again_soon_and_its_lateness_told() -> None:
    office = new_office()
    failures = [UnavailableError("busy")] * 2

    def before(call: str) -> None:
        if call == "list_pods" and failures:
            raise failures.pop()

    office.simulation.before = before
    sweeping = asyncio.create_task(office.sweep.run())
    await office.until(lambda: office.sweep.complete)
    sweeping.cancel()
    assert office.sweep.overdue_seconds == 0
    office.sweep._next = 0.0  # noqa: SLF001 - long ago
    assert office.sweep.overdue_seconds > 0
