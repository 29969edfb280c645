"""The room opened as the operator opens it, what it finds out about the cluster, and the index's control connect."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest

from harness.api_faults import CUT, FaultyApi, answer
from harness.control_plane import ControlPlane
from harness.kube_room import OPERATOR, Clock, Room, new_task, now
from sandyard_api.sandbox_class import SandboxClass
from sandyard_operator.kube import connect as connect_room
from sandyard_operator.kube.access import Access
from sandyard_operator.kube.client import Client
from sandyard_operator.kube.connect import Kube, MissingKindsError, Place, connect
from sandyard_operator.kube.facts import FRESH_SECONDS, ClusterFacts
from sandyard_operator.kube.policies import Neighbours, egress_name
from sandyard_operator.kube.resource import CLASSES, NODES, POLICIES, SERVICE_CIDRS
from sandyard_operator.ports import UnavailableError

HOST = "127.0.0.1"


async def open_as_operator(stack: AsyncExitStack, asked: list[tuple[str, str, str]]) -> Kube:
    """Open the room with the environment's access."""
    opening = connect(
        Place(neighbours=Neighbours(namespace=OPERATOR), identity="op-1"),
        may_write=lambda: True,
        now=now,
        monotonic=Clock(),
        observer=lambda verb, kind, error, _seconds: asked.append((verb, kind, error)),
        event_dropped=lambda: None,
    )
    return await stack.enter_async_context(opening)


async def test_opened_room_reads_and_is_watched(
    plane: ControlPlane, operator_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    asked: list[tuple[str, str, str]] = []
    async with AsyncExitStack() as stack:
        kube = await open_as_operator(stack, asked)
        assert await kube.cluster.get_task(operator_namespace, "absent") is None
    assert ("GET", "sandboxtasks", "NotFoundError") in asked
    assert ("GET", "secrets", "") in asked


async def test_missing_kinds_are_named(api: FaultyApi, monkeypatch: pytest.MonkeyPatch) -> None:
    async def through_proxy() -> Access:
        return api.access

    monkeypatch.setattr(connect_room, "find_access", through_proxy)
    api.next(answer(HTTPStatus.NOT_FOUND, "NotFound"), path="sandboxclasses")
    async with AsyncExitStack() as stack:
        with pytest.raises(MissingKindsError, match=r"sandboxclasses\.sandyard\.dev"):
            await open_as_operator(stack, [])


async def test_server_that_is_away_is_waited_for(api: FaultyApi, monkeypatch: pytest.MonkeyPatch) -> None:
    async def through_proxy() -> Access:
        return api.access

    monkeypatch.setattr(connect_room, "find_access", through_proxy)
    monkeypatch.setattr(connect_room, "RETRY_SECONDS", 0.0)
    for fault in (answer(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable"), CUT, CUT):
        api.next(fault, path="sandboxtasks")
    api.next(answer(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError"), path="secrets")
    async with AsyncExitStack() as stack:
        kube = await open_as_operator(stack, [])
        assert kube.authority.root_keys


async def test_server_that_stays_away_ends_the_opening(api: FaultyApi, monkeypatch: pytest.MonkeyPatch) -> None:
    async def through_proxy() -> Access:
        return api.access

    monkeypatch.setattr(connect_room, "find_access", through_proxy)
    monkeypatch.setattr(connect_room, "PATIENCE_SECONDS", 0.0)
    await api.stop()
    async with AsyncExitStack() as stack:
        with pytest.raises(UnavailableError):
            await open_as_operator(stack, [])


@pytest.fixture
async def node(room: Room) -> AsyncIterator[str]:
    """Register a node that can give user namespaces."""
    name = f"node-{uuid4().hex[:8]}"
    body: dict[str, Any] = {"metadata": {"name": name}, "spec": {"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}}
    await room.client.create(NODES.path(), body)
    status = {
        "addresses": [{"type": "InternalIP", "address": "203.0.113.77"}],
        "runtimeHandlers": [{"name": "", "features": {"userNamespaces": True}}],
    }
    await room.client.merge(NODES.path(name=name, subresource="status"), {"status": status})
    # The API server taints what it does not know to be ready.
    await room.client.merge(NODES.path(name=name), {"spec": {"taints": None}})
    yield name
    await room.client.delete(NODES.path(name=name), {})


@pytest.fixture
async def preferring(room: Room, node: str) -> AsyncIterator[SandboxClass]:
    """Create a class that prefers user namespaces, on that node."""
    name = f"c-{uuid4().hex[:12]}"
    spec = {"image": "i.invalid/r@sha256:" + "0" * 64, "nodeSelector": {"kubernetes.io/hostname": node}}
    await room.client.merge(NODES.path(name=node), {"metadata": {"labels": {"kubernetes.io/hostname": node}}})
    body = {"apiVersion": "sandyard.dev/v1alpha1", "kind": "SandboxClass", "metadata": {"name": name}, "spec": spec}
    yield SandboxClass.model_validate(await room.client.create(CLASSES.path(), body))
    await room.client.delete(CLASSES.path(name=name), {})


async def test_user_namespace_is_asked_for_where_the_nodes_can(
    room: Room, namespace: str, plane: ControlPlane, preferring: SandboxClass
) -> None:
    account = {"metadata": {"name": "default"}}
    assert plane.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account).is_success
    pod = await room.cluster.create_pod(await new_task(room, namespace), preferring, attempt=1)
    assert pod.user_namespace
    assert pod.signed


async def test_cluster_addresses_are_cut_out_of_what_a_task_may_reach(
    room: Room, namespace: str, plane: ControlPlane, preferring: SandboxClass
) -> None:
    account = {"metadata": {"name": "default"}}
    assert plane.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account).is_success
    task = await new_task(room, namespace, network={"egress": [{"cidr": "0.0.0.0/0"}]})
    await room.cluster.create_pod(task, preferring, attempt=1)
    policy = await room.client.get(POLICIES.path(namespace=namespace, name=egress_name(task.metadata.uid)))
    holes = policy["spec"]["egress"][0]["to"][0]["ipBlock"]["except"]
    assert {"203.0.113.77/32", "10.9.0.0/24", "10.0.0.0/24", "169.254.0.0/16"} <= set(holes)


@pytest.mark.usefixtures("node")
async def test_facts_are_kept_for_a_minute(api: FaultyApi) -> None:
    clock = Clock()
    async with Client(api.access) as client:
        facts = ClusterFacts(client, monotonic=clock, extra_cidrs=("192.0.2.0/24",))
        ranges = await facts.ranges()
        assert "192.0.2.0/24" in map(str, ranges.networks)
        assert await facts.ranges() == ranges
        assert api.seen[f"GET {NODES.path()}"] == 1
        clock.at += FRESH_SECONDS
        await facts.ranges()
        assert api.seen[f"GET {NODES.path()}"] == 2


async def test_older_kubernetes_has_no_service_ranges_to_tell(api: FaultyApi) -> None:
    api.next(answer(HTTPStatus.NOT_FOUND, "NotFound"), path=SERVICE_CIDRS.plural)
    async with Client(api.access) as client:
        await ClusterFacts(client, monotonic=Clock()).ranges()


async def test_index_that_answers_is_told_by_its_address(room: Room) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), HOST, 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        assert await room.cluster.index_reachable("localhost", port) in (HOST, "::1")
    assert await room.cluster.index_reachable(HOST, port) == ""
    assert await room.cluster.index_reachable("no-such-name.invalid", port) == ""
