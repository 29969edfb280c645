"""What the kernel says of memory and disk: the OOM killer's counter, and what a run's files take.

The counter exists on cgroup v1 and v2. Disk use is a walk that goes on a little at each call, so that a million
files never hold PID 1 up. Names come from a user: each is looked at relative to its open folder, no link followed.
"""

import os
import stat
from collections.abc import Iterator
from typing import Final

COUNTERS: Final = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
BLOCK_BYTES: Final = 512  # st_blocks counts these, whatever the file system
ENTRY_BYTES: Final = 1024  # what an empty file costs all the same: its inode
ENTRIES_AT_ONCE: Final = 4000
MAX_DEPTH: Final = 200  # folders below each other, each held open
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
    """Use of the writable folders against a limit, measured in slices.

    A folder whose mode shuts out its owner, as we are, or that lies too deep is left to the kubelet's own limit.
    """

    def __init__(self, folders: tuple[str, ...], *, limit: int) -> None:
        self._folders = folders
        self._devices = {os.stat(path).st_dev for path in folders}  # noqa: PTH116 - no pathlib in PID 1
        self._limit = limit
        self._walk = self._sizes()
        self._sum = 0

    def is_over(self) -> bool:
        """Go on with the walk for a bounded number of entries; tell whether it has found too much."""
        for _ in range(ENTRIES_AT_ONCE):
            size = next(self._walk, None)
            if size is None:
                self._walk, self._sum = self._sizes(), 0
                return False
            self._sum += size
            if self._sum > self._limit:
                return True
        return False

    def is_over_at_last(self) -> bool:
        """Walk once from the start until the end or the limit, whichever is first."""
        total = 0
        for size in self._sizes():
            total += size
            if total > self._limit:
                return True
        return False

    def _sizes(self) -> Iterator[int]:
        for path in self._folders:
            yield from _inside(path, above=None, depth=0)
        yield from _unnamed(self._devices)


def _inside(name: str, *, above: int | None, depth: int) -> Iterator[int]:
    try:
        folder = os.open(name, FOLDER, dir_fd=above)
    except OSError:
        return
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield _size(entry)
                if depth < MAX_DEPTH and entry.is_dir(follow_symlinks=False):
                    yield from _inside(entry.name, above=folder, depth=depth + 1)
    except OSError:
        return
    finally:
        os.close(folder)


def _unnamed(devices: set[int]) -> Iterator[int]:
    """Yield what the open files take that have no name any more."""
    seen = set()
    for pid in _numbers("/proc"):
        for number in _numbers(f"/proc/{pid}/fd"):
            try:
                found = os.stat(f"/proc/{pid}/fd/{number}")  # noqa: PTH116
            except OSError:
                continue
            file = (found.st_dev, found.st_ino)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 0 and file[0] in devices and file not in seen:
                seen.add(file)
                yield found.st_blocks * BLOCK_BYTES + ENTRY_BYTES


def _numbers(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.isdigit()]  # noqa: PTH208 - no pathlib in PID 1
    except OSError:
        return []


def _size(entry: "os.DirEntry[str]") -> int:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return 0
    # Each name of a file with several gets its share.
    names = found.st_nlink if stat.S_ISREG(found.st_mode) else 1
    return found.st_blocks * BLOCK_BYTES // max(1, names) + ENTRY_BYTES
