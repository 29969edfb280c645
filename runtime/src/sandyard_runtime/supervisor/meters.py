"""What the kernel says of memory and disk: the OOM killer's counter, and what a run's files take.

The counter exists on cgroup v1 and v2. Disk use is a walk that goes on a little at each call, so that a million
files never hold PID 1 up. Names come from a user: they are only looked at through directory descriptors' scans.
"""

import os
from collections.abc import Iterator
from typing import Final

COUNTERS: Final = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
BLOCK_BYTES: Final = 512  # st_blocks counts these, whatever the file system
ENTRY_BYTES: Final = 1024  # what an empty file costs all the same: its inode
ENTRIES_AT_ONCE: Final = 2000


def oom_kills() -> int:
    """Return how many processes of this container the OOM killer has taken."""
    for path in COUNTERS:
        try:
            with open(path) as file:  # noqa: PTH123 - no pathlib in PID 1
                for line in file:
                    name, _, value = line.partition(" ")
                    if name == "oom_kill":
                        return int(value)
        except OSError:
            continue
    return 0


class DiskMeter:
    """Use of the writable folders, measured in slices; ``used`` is the last whole walk or a larger part of one."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        self._folders = folders
        self._walk: Iterator[int] | None = None
        self._sum = 0
        self.used = 0

    def step(self) -> None:
        """Go on with the walk for a bounded number of entries."""
        if self._walk is None:
            self._walk, self._sum = self._sizes(), 0
        for _ in range(ENTRIES_AT_ONCE):
            size = next(self._walk, None)
            if size is None:
                self._walk, self.used = None, self._sum
                return
            self._sum += size
        self.used = max(self.used, self._sum)

    def finish(self) -> None:
        """Walk once from the start to the end."""
        self._walk = None
        self.step()
        while self._walk is not None:
            self.step()

    def _sizes(self) -> Iterator[int]:
        pending = list(self._folders)
        while pending:
            try:
                with os.scandir(pending.pop()) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
                        yield _size(entry)
            except OSError:
                continue


def _size(entry: "os.DirEntry[str]") -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES + ENTRY_BYTES
    except OSError:
        return 0
