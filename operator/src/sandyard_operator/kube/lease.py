"""The Lease that lets one of several operators act, and the epoch it acts under.

The holder renews every two seconds and may act until ten after it *sent* its last renewal that was answered;
another may take the Lease fifteen seconds after it last saw it change. Both count on clocks of their own that
never jump, so the times of day in the Lease are for people only. The epoch is ``leaseTransitions``: it grows
with each change of hands, also to a new process of the same pod.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, Protocol
from uuid import uuid4

from sandyard_api.names import LEASE_NAME
from sandyard_operator.kube.client import FIELD_MANAGER, Client
from sandyard_operator.kube.resource import LEASES
from sandyard_operator.ports import ConflictError, NotFoundError, PortError

DURATION_SECONDS: Final = 15.0
RENEW_DEADLINE_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 2.0
ATTEMPT_SECONDS: Final = 4.0  # two more fit into the deadline after one that hangs
JITTER: Final = 0.2
RELEASED_DURATION: Final = 1

logger = logging.getLogger(__name__)


class Leadership(Protocol):
    """Who is told; kept by the drive room."""

    def granted(self, *, epoch: int, until: float) -> None:
        """Act under ``epoch`` until ``until`` on the monotonic clock."""

    def lost(self) -> None:
        """Act no more."""


class LeaseLostError(Exception):
    """The Lease was held and could not be kept: the process has to end."""


class LeaseKeeper:
    """Takes, keeps and gives up the Lease of one namespace."""

    def __init__(  # noqa: PLR0913 - who, where, and clocks
        self,
        client: Client,
        *,
        namespace: str,
        identity: str,
        leadership: Leadership,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        jitter: Callable[[], float],
    ) -> None:
        self._client = client
        self._path = LEASES.path(namespace=namespace, name=LEASE_NAME)
        self._namespace = namespace
        self._pod = identity
        self._holder = f"{identity}_{uuid4().hex[:12]}"
        self._leadership = leadership
        self._now = now
        self._monotonic = monotonic
        self._jitter = jitter
        self._seen: tuple[str, float] = ("", 0.0)  # resourceVersion, and when it was first seen
        self._held: str = ""  # resourceVersion of our last write; empty while others hold it
        self._epoch = 0
        self._until = 0.0

    async def run(self) -> None:
        """Take and keep the Lease until cancelled; raises LeaseLostError when it was lost."""
        try:
            while True:
                try:
                    async with asyncio.timeout(ATTEMPT_SECONDS):
                        await self._turn()
                except (PortError, TimeoutError) as error:
                    logger.info("the lease could not be read or written: %s", error)
                self._check()
                await asyncio.sleep(RETRY_SECONDS * (1 + JITTER * (self._jitter() - 0.5)))
        except LeaseLostError:
            self._leadership.lost()
            raise

    async def release(self) -> None:
        """Give the Lease up, so that the next one need not wait; never raises."""
        self._leadership.lost()
        if not self._held:
            return
        held, self._held = self._held, ""
        spec = {"holderIdentity": "", "leaseDurationSeconds": RELEASED_DURATION, "renewTime": self._stamp()}
        with suppress(PortError):
            await self._client.merge(self._path, {"metadata": {"resourceVersion": held}, "spec": spec})

    def _check(self) -> None:
        if self._held and self._monotonic() >= self._until:
            raise LeaseLostError(f"the lease could not be renewed for {RENEW_DEADLINE_SECONDS:.0f} s")

    async def _turn(self) -> None:
        sent = self._monotonic()
        if self._held:
            await self._renew(sent)
            return
        try:
            lease = await self._client.get(self._path)
        except NotFoundError:
            await self._create(sent)
            return
        if self._is_free(lease):
            await self._take(lease, sent)

    async def _renew(self, sent: float) -> None:
        body = {"metadata": {"resourceVersion": self._held}, "spec": {"renewTime": self._stamp()}}
        try:
            lease = await self._client.merge(self._path, body)
        except ConflictError:
            lease = await self._client.get(self._path)
            if lease["spec"].get("holderIdentity") != self._holder:
                holder = lease["spec"].get("holderIdentity")
                raise LeaseLostError(f"{holder or 'nobody'} holds the lease now") from None
            # Our own renewal whose answer was lost; the next one extends the grant.
            self._held = lease["metadata"]["resourceVersion"]
            return
        except NotFoundError:
            raise LeaseLostError("the lease was deleted") from None
        self._grant(lease, sent)

    def _is_free(self, lease: dict[str, Any]) -> bool:
        version, spec = lease["metadata"]["resourceVersion"], lease.get("spec") or {}
        if version != self._seen[0]:
            self._seen = (version, self._monotonic())
        holder = spec.get("holderIdentity") or ""
        if not holder or holder.rpartition("_")[0] == self._pod:
            return True  # given up, or held by a dead process of this very pod
        return self._monotonic() - self._seen[1] >= DURATION_SECONDS

    async def _take(self, lease: dict[str, Any], sent: float) -> None:
        transitions = (lease.get("spec") or {}).get("leaseTransitions") or 0
        body = {
            "metadata": {"resourceVersion": lease["metadata"]["resourceVersion"]},
            "spec": self._spec(transitions + 1),
        }
        with suppress(ConflictError):  # somebody was faster
            self._grant(await self._client.merge(self._path, body), sent)

    async def _create(self, sent: float) -> None:
        """Apply rather than create: that can be granted by name. Whoever comes second is refused."""
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": "Lease",
            "metadata": {"namespace": self._namespace, "name": LEASE_NAME},
            "spec": self._spec(1),
        }
        manager = f"{FIELD_MANAGER}-{uuid4().hex}"
        with suppress(ConflictError):
            self._grant(await self._client.apply(self._path, lease, manager=manager, force=False), sent)

    def _grant(self, lease: dict[str, Any], sent: float) -> None:
        self._held = lease["metadata"]["resourceVersion"]
        self._epoch = lease["spec"]["leaseTransitions"]
        self._until = sent + RENEW_DEADLINE_SECONDS
        self._leadership.granted(epoch=self._epoch, until=self._until)

    def _spec(self, transitions: int) -> dict[str, Any]:
        return {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": int(DURATION_SECONDS),
            "acquireTime": self._stamp(),
            "renewTime": self._stamp(),
            "leaseTransitions": transitions,
        }

    def _stamp(self) -> str:
        return self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
