"""Fixtures of the kube room's contract: the room opened on a real API server, straight and through faults."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest

from harness.api_faults import FaultyApi, faulty
from harness.control_plane import ControlPlane
from harness.kube_room import CLASS, OPERATOR, Room, new_task, open_room
from harness.objects import manifest
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_operator.kube.access import Access, find_access
from sandyard_operator.kube.resource import CLASSES


@pytest.fixture
async def access(plane: ControlPlane) -> Access:
    """Return the way to the API server."""
    return await find_access(str(plane.kubeconfig))


@pytest.fixture
async def api(access: Access) -> AsyncIterator[FaultyApi]:
    """Put a faulty proxy in front of the API server."""
    async with faulty(access) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def operator_namespace(plane: ControlPlane) -> str:
    """Make the operator's own namespace."""
    return _namespace(plane, OPERATOR)


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    """Make a namespace for one test."""
    name = _namespace(plane, f"t-{uuid4().hex[:12]}")
    yield name
    plane.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
async def room(access: Access, operator_namespace: str) -> AsyncIterator[Room]:
    """Open the room straight on the API server."""
    async with AsyncExitStack() as stack:
        yield await open_room(access, operator_namespace, stack)


@pytest.fixture
async def shaky(api: FaultyApi, operator_namespace: str) -> AsyncIterator[Room]:
    """Open the room through the proxy."""
    async with AsyncExitStack() as stack:
        yield await open_room(api.access, operator_namespace, stack)


@pytest.fixture
async def sandbox_class(room: Room) -> AsyncIterator[SandboxClass]:
    """Create a class."""
    name = f"c-{uuid4().hex[:12]}"
    raw = await room.client.create(CLASSES.path(), manifest("SandboxClass", CLASS, name=name))
    yield SandboxClass.model_validate(raw)
    await room.client.delete(CLASSES.path(name=name), {})


@pytest.fixture
async def task(room: Room, namespace: str) -> SandboxTask:
    """Create a task; it goes with its namespace."""
    return await new_task(room, namespace)


def _namespace(plane: ControlPlane, name: str) -> str:
    created = plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    assert created.is_success, created.text
    return name
