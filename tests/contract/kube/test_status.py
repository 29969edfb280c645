"""A task's status is compared and swapped: nothing is overwritten, nothing is taken for written that is not."""

from http import HTTPStatus

import pytest

from harness.api_faults import CUT, CUT_AFTER_COMMIT, Fault, FaultyApi, answer
from harness.kube_room import Room, new_task
from sandyard_api.task import SandboxTask
from sandyard_operator.ports import ConflictError, RefusedError, UnavailableError, UnsureError

QUEUED = {"phase": "Queued", "message": "waiting"}
RUNNING = {
    "phase": "Running",
    "run": {"podName": "p", "podUID": "u", "attempt": 1, "runID": "r", "inputDigest": "d"},
    "timings": {"queueMilliseconds": 3},
}


async def test_whole_status_is_replaced(room: Room, task: SandboxTask) -> None:
    queued = await room.cluster.write_task_status(task, QUEUED)
    running = await room.cluster.write_task_status(queued, RUNNING)
    assert running.status is not None
    assert running.status.phase == "Running"
    assert running.status.message == "", "what the new status does not have is gone"
    assert running.status.run is not None
    assert running.metadata.generation == task.metadata.generation, "a status write is no change of the spec"


async def test_stale_write_conflicts(room: Room, task: SandboxTask) -> None:
    await room.cluster.write_task_status(task, QUEUED)
    with pytest.raises(ConflictError):
        await room.cluster.write_task_status(task, RUNNING)


async def test_task_of_the_same_name_conflicts(room: Room, task: SandboxTask) -> None:
    namespace, name = task.metadata.namespace, task.metadata.name
    await room.cluster.delete_task(task)
    assert await room.cluster.get_task(namespace, name) is None
    await new_task(room, namespace, name=name)
    with pytest.raises(ConflictError):
        await room.cluster.write_task_status(task, QUEUED)
    with pytest.raises(ConflictError):
        await room.cluster.delete_task(task)


async def test_run_never_changes(room: Room, task: SandboxTask) -> None:
    running = await room.cluster.write_task_status(task, RUNNING)
    other = RUNNING | {"run": RUNNING["run"] | {"runID": "another"}}  # type: ignore[operator]
    with pytest.raises(RefusedError, match=r"status\.run never changes"):
        await room.cluster.write_task_status(running, other)


async def test_nothing_is_written_without_the_lead(room: Room, task: SandboxTask) -> None:
    room.leading[0] = False
    with pytest.raises(UnavailableError, match="lease"):
        await room.cluster.write_task_status(task, QUEUED)
    stored = await room.cluster.get_task(task.metadata.namespace, task.metadata.name)
    assert stored is not None
    assert stored.status is None


@pytest.mark.parametrize(
    "fault",
    [
        CUT,
        CUT_AFTER_COMMIT,
        answer(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", arrives=True),
        answer(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError"),
        answer(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", arrives=True),
        answer(HTTPStatus.BAD_GATEWAY, arrives=True),
        answer(HTTPStatus.SERVICE_UNAVAILABLE, arrives=True),
    ],
)
async def test_lost_answer_is_unsure_and_a_read_tells(
    shaky: Room, api: FaultyApi, room: Room, task: SandboxTask, fault: Fault
) -> None:
    api.next(fault, verb="PATCH")
    with pytest.raises(UnsureError):
        await shaky.cluster.write_task_status(task, QUEUED)
    assert api.writes == 1, "a write is never repeated by the client itself"
    stored = await room.cluster.get_task(task.metadata.namespace, task.metadata.name)
    assert stored is not None
    assert (stored.status is not None) is fault.arrives


@pytest.mark.parametrize("status", [HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE])
async def test_pushed_back_write_names_the_delay(
    shaky: Room, api: FaultyApi, task: SandboxTask, status: HTTPStatus
) -> None:
    api.next(answer(status, "Busy", headers={"Retry-After": "7"}), verb="PATCH")
    with pytest.raises(UnavailableError) as caught:
        await shaky.cluster.write_task_status(task, QUEUED)
    assert caught.value.retry_after == 7


async def test_server_that_is_not_there_is_unavailable(shaky: Room, api: FaultyApi, task: SandboxTask) -> None:
    await api.stop()
    with pytest.raises(UnavailableError):
        await shaky.cluster.write_task_status(task, QUEUED)


async def test_cut_read_is_unavailable(shaky: Room, api: FaultyApi, task: SandboxTask) -> None:
    for _ in range(2):  # the HTTP client repeats a read once
        api.next(CUT, verb="GET")
    with pytest.raises(UnavailableError):
        await shaky.cluster.get_task(task.metadata.namespace, task.metadata.name)
