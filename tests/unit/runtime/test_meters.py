"""What the kernel's files say, on either version of control groups."""

from pathlib import Path

import pytest

from sandyard_runtime.supervisor import meters
from sandyard_runtime.worker import environment


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.events": "low 0\nhigh 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 1\n"}, 2),
        ({"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"}, 7),
        ({"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n"}, 0),
        ({}, 0),
    ],
    ids=["version 2", "version 1", "an old version 1", "none"],
)
def test_the_oom_killers_counter_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    counters = tuple(str(tmp_path / name) for name in ("memory.events", "memory.oom_control"))
    monkeypatch.setattr(meters, "COUNTERS", counters)
    assert meters.oom_kills() == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "250000 100000\n"}, 3),
        ({"cpu.cfs_quota_us": "200000\n", "cpu.cfs_period_us": "100000\n"}, 2),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_processors_follow_the_quota_or_else_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(environment, "QUOTA_V2", str(tmp_path / "cpu.max"))
    quota_v1 = tuple(str(tmp_path / name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    monkeypatch.setattr(environment, "QUOTA_V1", quota_v1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3, 4})
    assert environment.processors() == (expected or 5)


def test_a_walk_goes_on_from_call_to_call_and_finds_the_limit_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in range(5):
        (tmp_path / str(folder)).mkdir()
        for file in range(10):
            (tmp_path / str(folder) / str(file)).write_bytes(b"x" * 8192)
    monkeypatch.setattr(meters, "ENTRIES_AT_ONCE", 10)
    meter = meters.DiskMeter((str(tmp_path),), limit=40 * 8192)
    answers = [meter.is_over() for _ in range(6)]
    assert answers[0] is False
    assert True in answers
    assert meter.is_over_at_last()
