"""Opens the room: finds the API server, reads or makes the authority, and puts the parts together."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from sandyard_operator.kube.access import Access, find_access
from sandyard_operator.kube.authority import Authority
from sandyard_operator.kube.client import Client, Observer
from sandyard_operator.kube.cluster import KubeCluster
from sandyard_operator.kube.events import EventRecorder
from sandyard_operator.kube.facts import ClusterFacts
from sandyard_operator.kube.policies import Neighbours
from sandyard_operator.kube.resource import CLASSES, TASKS
from sandyard_operator.kube.tenant import Tenants
from sandyard_operator.kube.vault import open_authority
from sandyard_operator.kube.views import PodReader
from sandyard_operator.ports import NotFoundError


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the operator stands in the cluster."""

    neighbours: Neighbours
    identity: str  # the pod's name
    extra_cidrs: tuple[str, ...] = ()  # of nodes, pods and Services, where no object tells them


@dataclass(frozen=True, slots=True, kw_only=True)
class Kube:
    """The open room."""

    access: Access
    client: Client
    authority: Authority
    reader: PodReader
    cluster: KubeCluster


class MissingKindsError(Exception):
    """The API server does not know our kinds."""


@asynccontextmanager
async def connect(  # noqa: PLR0913 - where it stands, clocks, and who watches
    place: Place,
    *,
    may_write: Callable[[], bool],
    now: Callable[[], datetime],
    monotonic: Callable[[], float],
    observer: Observer,
    event_dropped: Callable[[], None],
) -> AsyncIterator[Kube]:
    """Open the room; ``may_write`` is asked right before each write whether this process still leads."""
    access = await find_access()
    async with Client(access, observer=observer) as client:
        await _check_kinds(client)
        authority = await open_authority(client, place.neighbours.namespace, now=now())
        events = EventRecorder(client, instance=place.identity, now=now, monotonic=monotonic, dropped=event_dropped)
        reader = PodReader(authority)
        cluster = KubeCluster(
            client,
            authority=authority,
            tenants=Tenants(client, authority, place.neighbours, now=now, monotonic=monotonic),
            facts=ClusterFacts(client, monotonic=monotonic, extra_cidrs=place.extra_cidrs),
            events=events,
            reader=reader,
            may_write=may_write,
        )
        writing = asyncio.create_task(events.run(), name="events")
        try:
            yield Kube(access=access, client=client, authority=authority, reader=reader, cluster=cluster)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)


async def _check_kinds(client: Client) -> None:
    """Make sure that our kinds are there: kopf would wait for a missing one in silence."""
    for kind in (TASKS, CLASSES):
        try:
            await client.get(kind.path(), query={"limit": "1"})
        except NotFoundError:
            raise MissingKindsError(
                f"the API server does not know {kind.plural}.{kind.group}: install the chart's CRDs first"
            ) from None
