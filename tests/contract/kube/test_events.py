"""Events on a real API server: written in the background, as a series when they repeat, few."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from harness.kube_room import Room, new_task
from sandyard_api.task import SandboxTask
from sandyard_operator.kube.events import BURST
from sandyard_operator.kube.resource import EVENTS


@pytest.fixture
async def writing(room: Room) -> AsyncIterator[Room]:
    """Have the room write its events."""
    task = asyncio.create_task(room.events.run())
    yield room
    task.cancel()


async def _events(room: Room, task: SandboxTask) -> list[dict[str, Any]]:
    await room.events.drain()
    items = room.client.items(EVENTS.path(namespace=task.metadata.namespace))
    return [item async for item in items if item["regarding"]["uid"] == task.metadata.uid]


async def test_event_is_about_its_task(writing: Room, task: SandboxTask) -> None:
    await writing.cluster.emit(task, reason="Succeeded", message="It ended well.", warning=False)
    (event,) = await _events(writing, task)
    assert (event["type"], event["reason"], event["note"]) == ("Normal", "Succeeded", "It ended well.")
    assert event["regarding"]["name"] == task.metadata.name


async def test_repeated_reason_becomes_a_series(writing: Room, task: SandboxTask) -> None:
    for _ in range(3):
        await writing.cluster.emit(task, reason="QuotaExceeded", message="Waiting.", warning=True)
    (event,) = await _events(writing, task)
    assert event["series"]["count"] == 3


async def test_storm_is_bounded_and_counted(writing: Room, namespace: str) -> None:
    tasks = [await new_task(writing, namespace) for _ in range(3)]
    for index in range(60):
        await writing.cluster.emit(tasks[index % 3], reason=f"R{index}", message="m", warning=False)
    found = [event for task in tasks for event in await _events(writing, task)]
    assert len(found) == BURST
    assert len(writing.dropped) == 60 - BURST


async def test_event_that_is_refused_is_dropped_in_silence(writing: Room, task: SandboxTask) -> None:
    await writing.cluster.emit(task, reason="x" * 200, message="m", warning=False)
    assert await _events(writing, task) == []
    assert len(writing.dropped) == 1


async def test_long_message_is_cut(writing: Room, task: SandboxTask) -> None:
    await writing.cluster.emit(task, reason="R", message="ü" * 1000, warning=False)
    (event,) = await _events(writing, task)
    assert event["note"] == "ü" * 512
