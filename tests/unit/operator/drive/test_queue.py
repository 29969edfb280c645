"""One worker per key, one due time per key, failures that wait longer."""

import asyncio

import pytest

from sandyard_operator.drive.backoff import FIRST_SECONDS, LAST_SECONDS, backoff_seconds
from sandyard_operator.drive.due import DueTimes
from sandyard_operator.drive.queue import KeyedQueue


class Time:
    """Seconds since the queue was made, as the loop counts them, and a test may add some."""

    def __init__(self) -> None:
        self.extra = 0.0
        self._began = asyncio.get_running_loop().time()

    def __call__(self) -> float:
        return asyncio.get_running_loop().time() - self._began + self.extra


async def new_queue() -> tuple[KeyedQueue[str], Time]:
    time = Time()
    return KeyedQueue(monotonic=time, jitter=lambda: 0.0), time


async def test_keys_come_in_the_order_they_were_asked_for_once_each() -> None:
    queue, _ = await new_queue()
    for key in "abab":
        queue.add(key)
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    assert len(queue) == 0


async def test_a_key_asked_for_while_it_is_worked_on_comes_again_afterwards() -> None:
    queue, _ = await new_queue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "b"
    assert len(queue) == 1
    queue.done("a")
    assert await queue.get() == "a"


async def test_a_worker_waits_for_a_key() -> None:
    queue, _ = await new_queue()
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not worker.done()
    queue.add("a")
    assert await worker == "a"


async def test_a_due_key_comes_by_itself_and_a_later_time_replaces_an_earlier() -> None:
    queue, time = await new_queue()
    queue.add_at("late", time() + 60)
    queue.add_at("a", time() + 60)
    queue.add_at("a", time() + 0.01)
    async with asyncio.timeout(5):
        assert await queue.get() == "a"


async def test_taking_a_key_drops_its_due_time() -> None:
    queue, time = await new_queue()
    queue.add_at("a", time() + 0.01)
    queue.add("a")
    await queue.get()
    queue.done("a")
    queue.add_at("b", time() + 0.02)
    async with asyncio.timeout(5):
        assert await queue.get() == "b"
    assert len(queue) == 0


async def test_failures_wait_longer_each_time_until_one_succeeds() -> None:
    queue, _ = await new_queue()
    queue.add_after_failure("a")
    queue.add_after_failure("a")
    assert queue.failures("a") == 2
    queue.succeeded("a")
    assert queue.failures("a") == 0


async def test_a_failure_waits_no_longer_than_what_else_is_due() -> None:
    queue, _ = await new_queue()
    queue.add_after_failure("a", at_least=60, at_most=0.0)
    async with asyncio.timeout(5):
        assert await queue.get() == "a"


async def test_a_forgotten_key_does_not_come() -> None:
    queue, time = await new_queue()
    queue.add("a")
    queue.add_after_failure("a")
    queue.forget("a")
    queue.add_at("b", time())
    async with asyncio.timeout(5):
        assert await queue.get() == "b"
    assert queue.failures("a") == 0


async def test_the_oldest_key_tells_how_long_it_waits() -> None:
    queue, time = await new_queue()
    assert queue.oldest_seconds() == 0
    queue.add("a")
    time.extra += 70
    queue.add("b")
    assert queue.oldest_seconds() >= 70


async def test_the_longest_work_tells_how_long_it_lasts() -> None:
    queue, time = await new_queue()
    assert queue.longest_work_seconds() == 0
    queue.add("a")
    await queue.get()
    time.extra += 400
    assert queue.longest_work_seconds() >= 400
    queue.done("a")
    assert queue.longest_work_seconds() == 0


async def test_quiet_is_when_nothing_is_worked_on() -> None:
    queue, _ = await new_queue()
    await queue.quiet()
    queue.add("a")
    queue.add("b")
    await queue.get()
    await queue.get()
    waiting = asyncio.create_task(queue.quiet())
    queue.done("a")
    await asyncio.sleep(0)
    assert not waiting.done()
    queue.done("b")
    await waiting


@pytest.mark.parametrize(
    ("failures", "whole"), [(1, FIRST_SECONDS), (2, 0.4), (9, 51.2), (10, LAST_SECONDS), (999, 60)]
)
def test_the_backoff_doubles_to_a_minute_with_half_of_it_by_chance(failures: int, whole: float) -> None:
    assert backoff_seconds(failures, jitter=0.0) == pytest.approx(whole / 2)
    assert backoff_seconds(failures, jitter=1.0) == pytest.approx(whole)


def test_due_times_come_in_order_one_per_key() -> None:
    due: DueTimes[str] = DueTimes()
    for at, key in ((3, "c"), (1, "a"), (2, "b"), (4, "a"), (5, "d")):
        due.set(key, at)
    due.drop("d")
    due.drop("never")
    assert len(due) == 3
    assert due.next() == 2
    assert list(due.pop(3)) == ["b", "c"]
    assert list(due.pop(9)) == ["a"]
    assert due.next() is None
