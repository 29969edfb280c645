"""Opens the room: finds the API server, reads or makes the authority, and puts the parts together."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

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
from sandyard_operator.ports import NotFoundError, UnavailableError, UnsureError

PATIENCE_SECONDS: Final = 45.0  # below the minute that the startup probe gives
RETRY_SECONDS: Final = 1.0
FAREWELL_SECONDS: Final = 1.0  # for the last events

logger = logging.getLogger(__name__)


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
        authority = await _patiently(lambda: _begin(client, place.neighbours.namespace, now()), monotonic)
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
            with suppress(TimeoutError):
                async with asyncio.timeout(FAREWELL_SECONDS):
                    await events.drain()
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)


async def _patiently(begin: Callable[[], Awaitable[Authority]], monotonic: Callable[[], float]) -> Authority:
    """Wait for an API server that is away: a process that ended would be started again ever more slowly."""
    deadline = monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return await begin()
        except (UnavailableError, UnsureError) as error:
            if monotonic() >= deadline:
                raise
            logger.warning("waiting for the API server: %s", error)
        await asyncio.sleep(RETRY_SECONDS)


async def _begin(client: Client, namespace: str, now: datetime) -> Authority:
    await _check_kinds(client)
    return await open_authority(client, namespace, now=now)


async def _check_kinds(client: Client) -> None:
    """Make sure that our kinds are there: kopf would wait for a missing one in silence."""
    for kind in (TASKS, CLASSES):
        try:
            await client.get(kind.path(), query={"limit": "1"})
        except NotFoundError:
            raise MissingKindsError(
                f"the API server does not know {kind.plural}.{kind.group}: install the chart's CRDs first"
            ) from None
