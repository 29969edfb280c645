"""The Lease on a real API server: one holder, a growing epoch, a quick hand-over, an end for who lost it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from uuid import uuid4

import pytest

from harness.api_faults import CUT_AFTER_COMMIT, FaultyApi
from harness.control_plane import ControlPlane
from harness.kube_room import Clock, now, until
from sandyard_api.names import LEASE_NAME
from sandyard_operator.drive.leadership import Leadership
from sandyard_operator.kube import lease as lease_room
from sandyard_operator.kube.access import Access
from sandyard_operator.kube.client import Client
from sandyard_operator.kube.lease import DURATION_SECONDS, RENEW_DEADLINE_SECONDS, LeaseKeeper, LeaseLostError
from sandyard_operator.kube.resource import LEASES

SEVERAL_TURNS_SECONDS = 0.1


class Candidate:
    """One operator as far as the Lease is concerned."""

    def __init__(self, client: Client, namespace: str, identity: str, clock: Clock) -> None:
        self.leadership = Leadership(clock)
        self.keeper = LeaseKeeper(
            client,
            namespace=namespace,
            identity=identity,
            leadership=self.leadership,
            now=now,
            monotonic=clock,
            jitter=lambda: 0.5,
        )
        self.task = asyncio.create_task(self.keeper.run())

    @property
    def epoch(self) -> int | None:
        """Return what it acts under."""
        return self.leadership.epoch

    async def stop(self) -> None:
        """End it without a word."""
        self.task.cancel()
        with suppress(asyncio.CancelledError, LeaseLostError):
            await self.task


class Field:
    """A Lease of its own and candidates for it."""

    def __init__(self, client: Client, namespace: str, clock: Clock) -> None:
        self.client = client
        self.namespace = namespace
        self.clock = clock
        self.candidates: list[Candidate] = []

    def enter(self, identity: str, *, client: Client | None = None) -> Candidate:
        """Start a candidate."""
        candidate = Candidate(client or self.client, self.namespace, identity, self.clock)
        self.candidates.append(candidate)
        return candidate

    @property
    def path(self) -> str:
        """Return the Lease's path."""
        return LEASES.path(namespace=self.namespace, name=LEASE_NAME)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn every twenty milliseconds; the deadlines are on the test's own clock."""
    monkeypatch.setattr(lease_room, "RETRY_SECONDS", 0.02)


@pytest.fixture
async def field(access: Access, plane: ControlPlane) -> AsyncIterator[Field]:
    """Make a namespace with a Lease to be had."""
    namespace = f"lease-{uuid4().hex[:8]}"
    assert plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).is_success
    async with AsyncExitStack() as stack:
        found = Field(await stack.enter_async_context(Client(access)), namespace, Clock())
        yield found
        for candidate in found.candidates:
            await candidate.stop()


async def test_one_of_two_that_start_at_once_leads(field: Field) -> None:
    one, other = field.enter("a"), field.enter("b")
    await until(lambda: one.epoch or other.epoch)
    assert sorted([one.epoch or 0, other.epoch or 0]) == [0, 1]


async def test_standby_takes_over_when_nothing_is_renewed(field: Field) -> None:
    old = field.enter("a")
    await until(lambda: old.epoch == 1)
    await old.stop()
    new = field.enter("b")
    await until(lambda: new.keeper._seen[0])  # noqa: SLF001 - it has seen the Lease once
    field.clock.at += DURATION_SECONDS - 0.1
    await asyncio.sleep(SEVERAL_TURNS_SECONDS)
    assert new.epoch is None
    field.clock.at += 0.2
    await until(lambda: new.epoch == 2)


async def test_released_lease_is_taken_at_once(field: Field) -> None:
    old = field.enter("a")
    await until(lambda: old.epoch == 1)
    await old.stop()
    await old.keeper.release()
    assert old.epoch is None
    new = field.enter("b")
    await until(lambda: new.epoch == 2)


async def test_new_process_of_the_same_pod_leads_under_a_new_epoch(field: Field) -> None:
    old = field.enter("a")
    await until(lambda: old.epoch == 1)
    await old.stop()
    new = field.enter("a")
    await until(lambda: new.epoch == 2)


async def test_stopped_process_finds_its_grant_over_before_anything_else(field: Field) -> None:
    old = field.enter("a")
    await until(lambda: old.epoch == 1)
    field.clock.at += RENEW_DEADLINE_SECONDS  # as after SIGSTOP: no code of it ran meanwhile
    assert old.epoch is None


async def test_who_was_overtaken_ends(field: Field) -> None:
    old = field.enter("a")
    await until(lambda: old.epoch == 1)
    await field.client.merge(field.path, {"spec": {"holderIdentity": "b_1", "leaseTransitions": 2}})
    await until(old.task.done)
    assert isinstance(old.task.exception(), LeaseLostError)
    assert old.epoch is None


async def test_deleted_lease_ends_the_holder(field: Field) -> None:
    old = field.enter("a")
    await until(lambda: old.epoch == 1)
    await field.client.delete(field.path, {})
    await until(old.task.done)
    assert isinstance(old.task.exception(), LeaseLostError)


async def test_lost_answers_cost_no_epoch(field: Field, api: FaultyApi) -> None:
    async with Client(api.access) as client:
        holder = field.enter("a", client=client)
        await until(lambda: holder.epoch == 1)
        api.next(CUT_AFTER_COMMIT, verb="PATCH", path=LEASE_NAME)
        before = api.seen[f"PATCH {field.path}"]
        await until(lambda: api.seen[f"PATCH {field.path}"] > before + 3)
        assert holder.epoch == 1
        await holder.stop()


async def test_server_that_stays_away_ends_the_holder(field: Field, api: FaultyApi) -> None:
    async with Client(api.access) as client:
        holder = field.enter("a", client=client)
        await until(lambda: holder.epoch == 1)
        await api.stop()
        field.clock.at += RENEW_DEADLINE_SECONDS
        await until(holder.task.done)
        assert isinstance(holder.task.exception(), LeaseLostError)
