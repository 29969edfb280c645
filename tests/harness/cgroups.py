"""Control groups of this machine for a room: a bound on memory and on processes, on version 1 or 2."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path("/sys/fs/cgroup")
DEADLINE_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.01


def unified() -> bool:
    """Tell whether the machine has version 2 alone."""
    return (ROOT / "cgroup.controllers").exists()


@contextlib.contextmanager
def bounded(*, memory_bytes: int, processes: int) -> Iterator[tuple[list[Path], list[tuple[str, str]]]]:
    """Make groups and give them with what a container would see of them, as (source, target)."""
    name = f"sandyard-test-{os.getpid()}"
    if unified():
        (ROOT / "cgroup.subtree_control").write_text("+memory +pids")
        groups = {ROOT / name: "/sys/fs/cgroup"}
        bounds = {"memory.max": memory_bytes, "pids.max": processes, "memory.swap.max": 0}
    else:
        groups = {ROOT / kind / name: f"/sys/fs/cgroup/{kind}" for kind in ("memory", "pids")}
        bounds = {"memory.limit_in_bytes": memory_bytes, "pids.max": processes}
    for group in groups:
        group.mkdir()
        for file, bound in bounds.items():
            if (group / file).exists():
                (group / file).write_text(str(bound))
    try:
        yield list(groups), [(str(group), target) for group, target in groups.items()]
    finally:
        for group in groups:
            _remove(group)


def _remove(group: Path) -> None:
    """Remove a group once its last process is gone."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(LOOK_SECONDS)
        else:
            return
