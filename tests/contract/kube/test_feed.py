"""The change feed on a real API server: what is there, what comes, what goes, over cut streams and lost history.

kopf must never write: every request it makes is counted.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus
from typing import Final

import pytest

from harness.api_faults import Fault, FaultyApi, answer
from harness.control_plane import ControlPlane
from harness.kube_room import Room, new_task, until
from harness.objects import manifest
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.pod import PodView
from sandyard_operator.edge.feed import WATCHED, FeedError, KopfFeed
from sandyard_operator.kube.resource import PODS, TASKS
from sandyard_operator.ports import Change, ObjectKind

EXPIRED: Final = Fault(
    arrives=False,
    status=HTTPStatus.OK,
    body={"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}},
)  # as the API server says it: in the stream


class Watcher:
    """A running feed and everything it said."""

    def __init__(self, feed: KopfFeed) -> None:
        self.feed = feed
        self.heard: list[Change] = []
        self.running = asyncio.create_task(feed.run())
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for change in self.feed.changes():
            self.heard.append(change)

    def tasks(self, *, gone: bool = False) -> set[str]:
        """Return the names of the tasks heard of."""
        return {c.value.metadata.name for c in self.heard if isinstance(c.value, SandboxTask) and c.gone is gone}

    async def stop(self) -> None:
        """End it."""
        for task in (self.running, self._listening):
            task.cancel()
            with suppress(asyncio.CancelledError, FeedError):
                await task


@pytest.fixture
async def watcher(api: FaultyApi, room: Room, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Watcher]:
    """Watch through the proxy."""
    caplog.set_level(logging.WARNING, logger="kopf")
    feed = KopfFeed(api.access, read_pod=room.reader.read)
    await feed.start()
    found = Watcher(feed)
    await until(lambda: api.streams == len(WATCHED))
    yield found
    await found.stop()


async def test_objects_are_heard_of_as_they_come_change_and_go(
    watcher: Watcher, room: Room, task: SandboxTask, sandbox_class: SandboxClass, plane: ControlPlane
) -> None:
    namespace = task.metadata.namespace
    await until(lambda: task.metadata.name in watcher.tasks())
    await until(lambda: any(c.value == sandbox_class for c in watcher.heard))
    account = {"metadata": {"name": "default"}}
    assert plane.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account).is_success
    pod = await room.cluster.create_pod(task, sandbox_class, attempt=1)
    await until(lambda: any(c.value == pod for c in watcher.heard))
    await room.cluster.delete_pod(pod)
    await until(lambda: any(c.kind is ObjectKind.POD and c.gone for c in watcher.heard))
    await room.cluster.delete_task(task)
    await until(lambda: task.metadata.name in watcher.tasks(gone=True))


async def test_nothing_is_ever_written(watcher: Watcher, api: FaultyApi, room: Room, task: SandboxTask) -> None:
    await until(lambda: task.metadata.name in watcher.tasks())
    written = await room.cluster.write_task_status(task, {"phase": "Queued"})
    await until(lambda: any(c.value == written for c in watcher.heard))
    assert api.writes == 0, api.seen
    stored = await room.client.get(TASKS.path(namespace=task.metadata.namespace, name=task.metadata.name))
    assert stored["metadata"]["resourceVersion"] == written.metadata.resource_version
    assert "finalizers" not in stored["metadata"]
    assert "annotations" not in stored["metadata"]


async def test_pods_of_others_are_not_even_sent(
    watcher: Watcher, room: Room, plane: ControlPlane, task: SandboxTask
) -> None:
    namespace = task.metadata.namespace
    account = {"metadata": {"name": "default"}}
    assert plane.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account).is_success
    pod = {"metadata": {"name": "other"}, "spec": {"containers": [{"name": "c", "image": "i.invalid/i"}]}}
    await room.client.create(PODS.path(namespace=namespace), pod)
    later = await new_task(room, namespace)
    await until(lambda: later.metadata.name in watcher.tasks())
    assert not [c for c in watcher.heard if isinstance(c.value, PodView) and c.value.name == "other"]


async def test_cut_streams_are_opened_again(watcher: Watcher, api: FaultyApi, room: Room, task: SandboxTask) -> None:
    await until(lambda: task.metadata.name in watcher.tasks())
    api.cut_streams()
    later = await new_task(room, task.metadata.namespace)
    await until(lambda: later.metadata.name in watcher.tasks())
    assert not watcher.running.done()


async def test_lost_history_is_listed_anew(watcher: Watcher, api: FaultyApi, room: Room, task: SandboxTask) -> None:
    await until(lambda: task.metadata.name in watcher.tasks())
    api.next(EXPIRED, verb="GET", path="sandboxtasks?watch")
    api.cut_streams()
    later = await new_task(room, task.metadata.namespace)
    await until(lambda: later.metadata.name in watcher.tasks())
    assert api.seen["GET /apis/sandyard.dev/v1alpha1/sandboxtasks"] >= 4, "list, watch, expired, list"


async def test_watch_that_is_refused_ends_the_feed(watcher: Watcher, api: FaultyApi, task: SandboxTask) -> None:
    """The process then ends and is restarted: a feed that is deaf to one kind is worse."""
    await until(lambda: task.metadata.name in watcher.tasks())
    api.next(answer(HTTPStatus.BAD_REQUEST, "BadRequest"), verb="GET", path="sandboxtasks?watch")
    api.cut_streams()
    await until(watcher.running.done)
    assert isinstance(watcher.running.exception(), FeedError)


async def test_unreadable_object_costs_no_other(
    watcher: Watcher, room: Room, task: SandboxTask, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = task.metadata.namespace
    secret = "hunter2"

    def refuse(raw: object) -> SandboxTask:
        if "hunter2" in str(raw):
            raw = manifest("SandboxTask", {"code": 7, "args": secret})
        return SandboxTask.model_validate(raw)

    monkeypatch.setitem(watcher.feed._readers, ObjectKind.TASK, refuse)  # noqa: SLF001 - an older model
    bad = await new_task(room, namespace, code=secret)
    good = await new_task(room, namespace)
    await until(lambda: good.metadata.name in watcher.tasks())
    assert bad.metadata.name not in watcher.tasks()
    assert "is not as this version of the operator knows it" in caplog.text
    assert secret not in caplog.text


async def test_ended_feed_leaves_other_tasks_of_the_loop_alone(api: FaultyApi, room: Room) -> None:
    feed = KopfFeed(api.access, read_pod=room.reader.read)
    await feed.start()
    watcher = Watcher(feed)
    bystander = asyncio.create_task(asyncio.Event().wait())
    await until(lambda: api.streams == len(WATCHED))
    before = {watcher.running, watcher._listening, bystander, asyncio.current_task()}  # noqa: SLF001
    await watcher.stop()
    left = {t for t in asyncio.all_tasks() if t not in before and "kopf" in str(t.get_coro())}
    assert not bystander.done()
    assert not left
    bystander.cancel()
