"""Tasks carried through by workers that interleave."""

import asyncio
from collections.abc import Callable

import pytest

from harness.facts import DEPENDENT
from harness.office import Office, at_work, new_office
from harness.simulated_agents import SUCCESS
from harness.simulation import make_class, make_task
from sandyard_api.wire import InstallPhase, InstallStatus, Package, RunPhase
from sandyard_operator.decide.pod import RefusalKind
from sandyard_operator.decide.standing import Standing, standing_of
from sandyard_operator.ports import ConflictError, RefusedError, UnavailableError, UnsureError
from sandyard_operator.tasks import conductor as module
from sandyard_operator.tasks.places import key_of

INDEX = {"url": "http://index.test/simple/"}


def running(office: Office) -> int:
    return sum(a.run is not None and a.run.phase is RunPhase.RUNNING for a in office.simulation.agents.values())


def finish_all(office: Office) -> None:
    for agent in office.simulation.agents.values():
        if agent.run is not None and agent.run.phase is RunPhase.RUNNING:
            agent.finish(SUCCESS)


def writes(office: Office) -> int:
    calls = office.simulation.calls
    return calls["write_task_status"] + calls["create_pod"] + calls["set_network"]


def fail_once(call: str, error: Exception) -> Callable[[str], None]:
    left = [error]

    def hook(name: str) -> None:
        if name == call and left:
            raise left.pop()

    return hook


async def test_a_task_without_dependencies_costs_four_writes() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    async with at_work(office):
        task = office.simulation.add_task(make_task())
        await office.until_phase(task, "Running")
        finish_all(office)
        await office.until(lambda: not office.simulation.pods)
    assert office.status(task).phase == "Succeeded"
    assert writes(office) == 4
    assert [end.status.reason for end in office.records.ends if end.status] == ["Succeeded"]


async def test_a_task_with_dependencies_costs_seven() -> None:
    office = new_office()
    office.simulation.missing = ("six==1.17.0",)
    office.simulation.add_class(make_class(index=INDEX))
    async with at_work(office):
        task = office.simulation.add_task(make_task(code=DEPENDENT))
        await office.until_phase(task, "Installing")
        await office.until(lambda: office.simulation.calls["install"])
        for agent in office.simulation.agents.values():
            agent.install = InstallStatus(
                phase=InstallPhase.SUCCEEDED, packages=(Package(name="six", version="1.17.0", sha256="a" * 64),)
            )
        await office.until_phase(task, "Running")
        finish_all(office)
        await office.until_phase(task, "Succeeded")
    assert writes(office) == 7
    assert office.simulation.calls["probe"] == 2
    assert [p.name for p in office.status(task).packages] == ["six"]


async def test_a_refused_script_costs_one_and_makes_nothing() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    async with at_work(office):
        task = office.simulation.add_task(make_task(code="# /// script\n"))
        await office.until_phase(task, "Failed")
    assert writes(office) == 1
    assert office.simulation.calls["prepare_namespace"] == 0


async def test_of_six_at_once_four_run_and_two_follow() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    tasks = [office.simulation.add_task(make_task(f"t{i}")) for i in range(6)]
    async with at_work(office):
        await office.until(lambda: running(office) == 4)
        assert sum(standing_of(t) is Standing.ADMITTED for t in office.simulation.tasks.values()) == 4
        assert [office.status(task).phase for task in tasks[4:]] == ["Queued", "Queued"]
        while any(office.status(task).phase != "Succeeded" for task in tasks):
            assert running(office) <= 4
            finish_all(office)
            await asyncio.sleep(0.01)


async def test_of_fifteen_the_last_is_refused_although_its_uid_is_the_least() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    async with at_work(office):
        tasks = [office.simulation.add_task(make_task(f"z{i:02d}")) for i in range(14)]
        await office.until(lambda: running(office) == 4 and all(office.status(t).phase for t in tasks))
        last = office.simulation.add_task(make_task("a"))
        await office.until_phase(last, "Failed")
        assert office.status(last).reason == "QueueFull"
        assert {office.status(task).phase for task in tasks} == {"Running", "Queued"}


async def test_a_cancel_is_acted_on_while_the_agent_holds_the_poll() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    async with at_work(office):
        task = office.simulation.add_task(make_task())
        await office.until_phase(task, "Running")
        office.simulation.patch_spec(task, cancel=True)
        async with asyncio.timeout(15):  # the agent holds a poll for 25
            await office.until_phase(task, "Cancelled")
    result = office.status(task).result
    assert result is not None
    assert result.stdout.text == "part"


async def test_a_deleted_task_takes_pod_place_and_memory_along() -> None:
    office = new_office()
    office.simulation.add_class(make_class(queue={"maxRunning": 1}))
    async with at_work(office):
        first = office.simulation.add_task(make_task("a"))
        await office.until_phase(first, "Running")
        second = office.simulation.add_task(make_task("b"))
        await office.until_phase(second, "Queued")
        office.simulation.remove_task(first)
        await office.until_phase(second, "Running")
        await office.until(lambda: [p.owner_uid for p in office.simulation.pods.values()] == ["uid-b"])
        assert len(office.conductor.listening) == 1


async def test_a_queued_task_that_is_cancelled_leaves_the_queue() -> None:
    office = new_office()
    office.simulation.add_class(make_class(queue={"maxRunning": 1, "maxQueued": 1}))
    async with at_work(office):
        first = office.simulation.add_task(make_task("a"))
        await office.until_phase(first, "Running")
        second = office.simulation.add_task(make_task("b"))
        await office.until_phase(second, "Queued")
        office.simulation.patch_spec(second, cancel=True)
        await office.until_phase(second, "Cancelled")
        third = office.simulation.add_task(make_task("c"))
        await office.until_phase(third, "Queued")


async def test_a_change_of_the_class_is_heeded_by_those_that_wait() -> None:
    office = new_office()
    one = make_class(queue={"maxRunning": 1})
    office.simulation.add_class(one)
    async with at_work(office):
        first, second = (office.simulation.add_task(make_task(name)) for name in "ab")
        await office.until(lambda: {office.status(t).phase for t in (first, second)} == {"Running", "Queued"})
        metadata = one.metadata.model_copy(update={"generation": 2, "resource_version": "999999"})
        wider = make_class(queue={"maxRunning": 2})
        office.simulation.add_class(wider.model_copy(update={"metadata": metadata}))
        await office.until(lambda: running(office) == 2)


async def test_a_class_that_comes_late_is_too_late() -> None:
    office = new_office()
    async with at_work(office):
        task = office.simulation.add_task(make_task())
        await office.until_phase(task, "Failed")
    assert office.status(task).reason == "ClassNotFound"


@pytest.mark.parametrize("error", [UnavailableError("429", retry_after=0.01), UnsureError("cut")])
@pytest.mark.parametrize("call", ["write_task_status", "create_pod"])
async def test_a_write_that_fails_is_made_good(call: str, error: Exception) -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    office.simulation.before = fail_once(call, error)
    async with at_work(office):
        task = office.simulation.add_task(make_task())
        await office.until(lambda: office.simulation.starts(task))
    assert office.simulation.starts(task) == 1
    assert [failed for _, failed in office.records.actions if failed] == [type(error).__name__]


async def test_a_claim_whose_answer_was_lost_is_found_and_started_once() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    lost: list[str] = []

    def after(call: str) -> None:
        stored = next(iter(office.simulation.tasks.values())).status
        if call == "write_task_status" and stored is not None and stored.run is not None and not lost:
            lost.append(call)
            raise UnsureError("cut")

    office.simulation.after = after
    async with at_work(office):
        task = office.simulation.add_task(make_task())
        await office.until(lambda: office.simulation.starts(task))
    assert lost
    assert office.simulation.starts(task) == 1


async def test_conflicts_without_end_have_to_wait() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    left = [ConflictError("changed")] * 8

    def before(call: str) -> None:
        if call == "write_task_status" and left:
            raise left.pop()

    office.simulation.before = before
    async with at_work(office):
        task = office.simulation.add_task(make_task())
        await office.until(lambda: office.simulation.starts(task))
    assert not left


async def test_nothing_is_done_without_the_lease() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    async with at_work(office):
        office.leadership.lost()
        office.simulation.add_task(make_task())
        office.deliver()
        await office.conductor.queue.quiet()
        await asyncio.sleep(0.05)
        assert writes(office) == 0
        office.leadership.granted(epoch=2, until=float("inf"))
        office.conductor.take_over(2)
        await office.until(lambda: writes(office) >= 3)


async def test_standing_by_ends_the_waits() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    async with at_work(office):
        task = office.simulation.add_task(make_task())
        await office.until_phase(task, "Running")
        await office.until(lambda: len(office.conductor.listening) == 1)
        await office.conductor.stand_by()
        assert len(office.conductor.listening) == 0
        assert not office.conductor.may_act


async def test_a_plan_that_gets_nowhere_takes_no_processor_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FAULT_SECONDS", 0.01)
    office = new_office()
    office.simulation.add_class(make_class())

    async with at_work(office):
        task = office.simulation.add_task(make_task())
        await office.until(lambda: office.simulation.agents)
        await office.until_phase(task, "Running")
        agent = next(iter(office.simulation.agents.values()))
        agent.forgetful = True
        agent.run = None
        await office.until_phase(task, "Failed")
    assert office.status(task).reason == "InternalError"


async def test_a_status_refused_for_good_is_written_without_the_result() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    refused: list[str] = []

    def before(call: str) -> None:
        ended = any(a.run is not None and a.run.result is not None for a in office.simulation.agents.values())
        if call == "write_task_status" and ended and not refused:
            refused.append(call)
            raise RefusedError(RefusalKind.INVALID, "too large")

    office.simulation.before = before
    async with at_work(office):
        task = office.simulation.add_task(make_task())
        await office.until_phase(task, "Running")
        finish_all(office)
        await office.until_phase(task, "Failed")
    assert office.status(task).reason == "InternalError"
    assert "too large" in office.status(task).message


async def test_a_task_is_forgotten_with_its_last_pod() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    async with at_work(office):
        task = office.simulation.add_task(make_task())
        await office.until_phase(task, "Running")
        memories = office.conductor._memories  # noqa: SLF001 - growth is what is tested
        assert set(memories) == {key_of(task)}
        finish_all(office)
        await office.until(lambda: not memories)


async def test_a_finished_task_goes_after_its_time() -> None:
    office = new_office()
    office.simulation.add_class(make_class())
    async with at_work(office):
        task = office.simulation.add_task(make_task(ttlSecondsAfterFinished=1, cancel=True))
        await office.until_phase(task, "Cancelled")
        await office.until(lambda: not office.simulation.tasks)


async def test_inputs_are_read_once_to_judge_and_once_to_run_and_not_kept_while_waiting() -> None:
    office = new_office()
    office.simulation.add_class(make_class(queue={"maxRunning": 1}))
    office.simulation.values[("c", "k")] = b"print(1)\n"
    async with at_work(office):
        first = office.simulation.add_task(make_task("a"))
        await office.until_phase(first, "Running")
        second = office.simulation.add_task(make_task("b", codeFrom={"configMapKeyRef": {"name": "c", "key": "k"}}))
        await office.until_phase(second, "Queued")
        await office.conductor.queue.quiet()
        assert office.simulation.calls["config_map_value"] == 1
        finish_all(office)
        await office.until_phase(second, "Running")
        assert office.simulation.calls["config_map_value"] == 2
