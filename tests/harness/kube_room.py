"""The kube room opened on a real API server, with a clock and a lead that the test turns."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from harness.objects import DIGEST, manifest
from sandyard_api.task import SandboxTask
from sandyard_operator.kube.access import Access
from sandyard_operator.kube.authority import Authority
from sandyard_operator.kube.client import Client
from sandyard_operator.kube.cluster import KubeCluster
from sandyard_operator.kube.events import EventRecorder
from sandyard_operator.kube.facts import ClusterFacts
from sandyard_operator.kube.policies import Neighbours
from sandyard_operator.kube.resource import TASKS
from sandyard_operator.kube.tenant import Tenants
from sandyard_operator.kube.vault import open_authority
from sandyard_operator.kube.views import PodReader

DEADLINE_SECONDS: Final = 20.0
POLL_SECONDS: Final = 0.01
OPERATOR: Final = "operator-home"
INDEX: Final = {
    "url": "https://index.example:8443/simple/",
    "egress": {"cidrs": ["198.51.100.0/24"], "ports": [{"port": 8443}]},
}
CLASS: Final = {"image": DIGEST, "index": INDEX, "userNamespaces": "Off"}


@dataclass(slots=True)
class Clock:
    """Monotonic time that a test moves."""

    at: float = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.at


@dataclass(slots=True, kw_only=True)
class Room:
    """The room as opened, with what a test turns."""

    client: Client
    cluster: KubeCluster
    authority: Authority
    reader: PodReader
    events: EventRecorder
    clock: Clock
    leading: list[bool] = field(default_factory=lambda: [True])
    dropped: list[None] = field(default_factory=list)


async def new_task(room: Room, namespace: str, *, name: str = "", **spec: Any) -> SandboxTask:
    """Create a task, of a random name if none is given."""
    body = manifest("SandboxTask", {"code": "print(1)"} | spec, name=name or f"t-{uuid4().hex[:12]}")
    return SandboxTask.model_validate(await room.client.create(TASKS.path(namespace=namespace), body))


async def open_room(access: Access, home: str, stack: AsyncExitStack) -> Room:
    """Put the room's parts together as ``connect`` does, with a clock and a lead of the test's own."""
    client = await stack.enter_async_context(Client(access))
    authority = await open_authority(client, home, now=now())
    clock, leading, dropped = Clock(), [True], list[None]()
    events = EventRecorder(
        client, instance="test-operator", now=now, monotonic=clock, dropped=lambda: dropped.append(None)
    )
    reader = PodReader(authority)
    cluster = KubeCluster(
        client,
        authority=authority,
        tenants=Tenants(client, authority, Neighbours(namespace=home), now=now, monotonic=clock),
        facts=ClusterFacts(client, monotonic=clock),
        events=events,
        reader=reader,
        may_write=lambda: leading[0],
    )
    return Room(
        client=client,
        cluster=cluster,
        authority=authority,
        reader=reader,
        events=events,
        clock=clock,
        leading=leading,
        dropped=dropped,
    )


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds; nothing in the tested code would tell."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(POLL_SECONDS)


def now() -> datetime:
    """Return the time of day."""
    return datetime.fromtimestamp(time.time(), tz=UTC)
