"""Reads on a real API server: whole lists, values of ConfigMaps and Secrets, objects that are not there."""

from base64 import b64encode
from http import HTTPStatus
from typing import Any

import pytest

from harness.api_faults import FaultyApi, answer
from harness.control_plane import ControlPlane
from harness.kube_room import Room, new_task
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_operator.kube import client as client_room
from sandyard_operator.ports import NotFoundError, RefusedError, UnavailableError


async def test_list_goes_over_pages(room: Room, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_room, "PAGE_OBJECTS", 2)
    made = {(await new_task(room, namespace)).metadata.name for _ in range(5)}
    found = [t.metadata.name for t in await room.cluster.list_tasks() if t.metadata.namespace == namespace]
    assert sorted(found) == sorted(made)


async def test_list_that_breaks_half_way_is_no_list(
    room: Room, shaky: Room, api: FaultyApi, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_room, "PAGE_OBJECTS", 1)
    for _ in range(2):
        await new_task(room, namespace)
    api.next(answer(HTTPStatus.GONE, "Expired"), verb="GET", path="continue=")
    with pytest.raises(UnavailableError):
        await shaky.cluster.list_tasks()


async def test_config_map_values_are_bytes(room: Room, plane: ControlPlane, namespace: str) -> None:
    body = {
        "metadata": {"name": "inputs"},
        "data": {"text": "grün\n"},
        "binaryData": {"bytes": b64encode(b"\xff\x00").decode()},
    }
    assert plane.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", body).is_success
    assert await room.cluster.config_map_value(namespace, "inputs", "text") == "grün\n".encode()
    assert await room.cluster.config_map_value(namespace, "inputs", "bytes") == b"\xff\x00"
    assert await room.cluster.config_map_value(namespace, "inputs", "other") is None
    assert await room.cluster.config_map_value(namespace, "other", "text") is None


async def test_secret_values_are_bytes(room: Room, plane: ControlPlane, namespace: str) -> None:
    body = {"metadata": {"name": "s"}, "data": {"k": b64encode(b"\xff").decode()}}
    assert plane.request("POST", f"/api/v1/namespaces/{namespace}/secrets", body).is_success
    assert await room.cluster.secret_value(namespace, "s", "k") == b"\xff"
    assert await room.cluster.secret_value(namespace, "s", "x") is None
    assert await room.cluster.secret_value(namespace, "x", "k") is None


async def test_absent_objects_are_none(room: Room, namespace: str) -> None:
    assert await room.cluster.get_task(namespace, "absent") is None
    assert await room.cluster.get_pod(namespace, "absent") is None
    assert await room.cluster.get_class("absent") is None
    with pytest.raises(NotFoundError):
        await room.cluster.namespace_labels("absent")


async def test_class_and_labels_are_read(room: Room, namespace: str, sandbox_class: SandboxClass) -> None:
    assert await room.cluster.get_class(sandbox_class.metadata.name) == sandbox_class
    assert sandbox_class in await room.cluster.list_classes()
    assert (await room.cluster.namespace_labels(namespace))["kubernetes.io/metadata.name"] == namespace


async def test_class_status_is_swapped(room: Room, sandbox_class: SandboxClass) -> None:
    await room.cluster.write_class_status(sandbox_class, {"python": "3.13.5", "observedGeneration": 1})
    stored = await room.cluster.get_class(sandbox_class.metadata.name)
    assert stored is not None
    assert stored.status is not None
    assert stored.status.python == "3.13.5"


async def test_unreadable_object_is_named_without_its_values_and_costs_no_other(
    room: Room, namespace: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Stand in for an object that a newer operator stored: the model of today refuses it."""
    secret = "hunter2"
    bad, good = await new_task(room, namespace, args=[secret]), await new_task(room, namespace)
    read = SandboxTask.model_validate

    def refuse(raw: Any) -> SandboxTask:
        return read(raw | {"spec": {"args": secret}} if raw["metadata"]["name"] == bad.metadata.name else raw)

    monkeypatch.setattr(SandboxTask, "model_validate", refuse)
    found = [task.metadata.name for task in await room.cluster.list_tasks()]
    assert good.metadata.name in found
    assert bad.metadata.name not in found
    assert bad.metadata.name in caplog.text
    with pytest.raises(RefusedError, match=r"spec\.args: tuple_type") as caught:
        await room.cluster.get_task(namespace, bad.metadata.name)
    assert secret not in caplog.text + str(caught.value)


async def test_task_that_is_gone_needs_no_deletion(room: Room, namespace: str) -> None:
    task = await new_task(room, namespace)
    await room.cluster.delete_task(task)
    await room.cluster.delete_task(task)
