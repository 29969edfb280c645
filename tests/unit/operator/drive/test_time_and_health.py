"""A clock that never jumps, a grant that ends by itself, facts that a stuck loop cannot fake."""

import asyncio
from datetime import timedelta

import pytest

from harness.simulation import START, FakeTime
from sandyard_operator.drive import health
from sandyard_operator.drive.clock import SteadyClock
from sandyard_operator.drive.health import Health, LoopLag
from sandyard_operator.drive.leadership import Leadership


def clock(time: FakeTime, wall_offset: list[float]) -> SteadyClock:
    return SteadyClock(wall=lambda: time.now().timestamp() + wall_offset[0], monotonic=time.monotonic)


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_clock_set_an_hour_off_moves_nothing_at_once(jump: float) -> None:
    time, offset = FakeTime(), [0.0]
    steady = clock(time, offset)
    offset[0] = jump
    time.pass_seconds(10)
    assert abs(steady.now() - START - timedelta(seconds=10)) <= timedelta(seconds=1)


def test_it_follows_the_wall_in_the_end() -> None:
    time, offset = FakeTime(), [0.0]
    steady = clock(time, offset)
    offset[0] = 3600
    time.pass_seconds(40_000)
    assert steady.now() == time.now() + timedelta(hours=1)


def test_it_never_goes_back() -> None:
    time, offset = FakeTime(), [0.0]
    steady = clock(time, offset)
    offset[0] = -7200
    seen = []
    for _ in range(50):
        time.pass_seconds(1)
        seen.append(steady.now())
    assert seen == sorted(seen)


def test_a_grant_ends_by_itself() -> None:
    time = FakeTime()
    leadership = Leadership(time.monotonic)
    assert leadership.epoch is None
    leadership.granted(epoch=3, until=10)
    assert leadership.epoch == 3
    time.pass_seconds(10)
    assert leadership.epoch is None


async def test_a_gain_and_a_loss_are_told_a_renewal_is_not() -> None:
    time = FakeTime()
    leadership = Leadership(time.monotonic)
    leadership.granted(epoch=3, until=10)
    assert await leadership.changed() == 3
    leadership.granted(epoch=3, until=20)
    waiting = asyncio.create_task(leadership.changed())
    await asyncio.sleep(0)
    assert not waiting.done()
    leadership.lost()
    assert await waiting is None


async def test_a_grant_that_lapsed_and_came_back_is_a_gain() -> None:
    time = FakeTime()
    leadership = Leadership(time.monotonic)
    leadership.granted(epoch=3, until=10)
    await leadership.changed()
    time.pass_seconds(15)
    leadership.granted(epoch=3, until=30)
    assert await leadership.changed() == 3


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, []),
        ({"loop_lag_seconds": 6.0}, ["blocked"]),
        ({"oldest_key_seconds": 61.0}, ["waiting"]),
        ({"longest_work_seconds": 301.0}, ["worked on"]),
        ({"sweep_overdue_seconds": 1.0}, ["overdue"]),
    ],
)
def test_ailments_say_what_is_wrong(facts: dict[str, float], words: list[str]) -> None:
    known = dict.fromkeys(
        ("loop_lag_seconds", "oldest_key_seconds", "longest_work_seconds", "sweep_overdue_seconds"), 0.0
    )
    ailments = Health(**(known | facts)).ailments
    assert len(ailments) == len(words)
    assert all(word in ailment for word, ailment in zip(words, ailments, strict=True))


async def test_a_beat_that_does_not_come_is_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "BEAT_SECONDS", 0.01)
    time = FakeTime()
    lag = LoopLag(time.monotonic)
    time.pass_seconds(7)
    assert lag.seconds == pytest.approx(6.99)
    beating = asyncio.create_task(lag.run())
    await asyncio.sleep(0)
    assert lag.seconds == 0
    time.pass_seconds(2)
    async with asyncio.timeout(5):
        while lag.seconds == pytest.approx(1.99) and not beating.done():
            await asyncio.sleep(0.01)
            if lag._last:  # noqa: SLF001 - the beat has come
                break
    assert lag.seconds == pytest.approx(1.99)
    beating.cancel()
