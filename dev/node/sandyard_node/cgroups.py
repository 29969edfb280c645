"""The cgroup that holds every process of one cluster, daemons and pods alike.

It replaces pid files: whatever is in the cgroup is ours and whatever is ours is in it, also when this tool was killed
between starting a program and writing anything down. Works with cgroup v1 (all hierarchies) and v2.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sandyard_node.errors import NodeError

STOP_SECONDS: Final = 20
POLL_SECONDS: Final = 0.05
TRACKING_V1: Final = "pids"
CPUSET_FILES: Final = ("cpuset.mems", "cpuset.cpus")


@dataclass(frozen=True, slots=True)
class Cgroup:
    """One path below the root of every hierarchy."""

    path: str
    roots: tuple[Path, ...]  # the first is where processes are counted

    @classmethod
    def find(cls, path: str, mountinfo: str | None = None) -> "Cgroup":
        """Find the machine's hierarchies."""
        if mountinfo is None:
            mountinfo = Path("/proc/self/mountinfo").read_text()
        unified, v1, tracking = _hierarchies(mountinfo)
        if tracking:
            return cls(path, (tracking, *(root for root in (*v1, *unified) if root != tracking)))
        if unified:
            return cls(path, (unified[0],))
        raise NodeError(
            "no cgroup hierarchy with the pids controller is mounted.", fix="mount cgroup2 on /sys/fs/cgroup"
        )

    def child(self, name: str) -> "Cgroup":
        """Return a cgroup below this one."""
        return Cgroup(f"{self.path}/{name}", self.roots)

    @property
    def folder(self) -> Path:
        """Where its processes are counted."""
        return self.roots[0] / self.path

    def make(self) -> None:
        """Create it in every hierarchy; a cpuset of v1 starts with what its parent has."""
        for root in self.roots:
            folder = root
            for part in self.path.split("/"):
                parent, folder = folder, folder / part
                folder.mkdir(exist_ok=True)
                for name in CPUSET_FILES:
                    if (folder / name).exists() and not (folder / name).read_text().strip():
                        (folder / name).write_text((parent / name).read_text())

    def pids(self) -> list[int]:
        """Return the processes directly in it."""
        try:
            return [int(pid) for pid in (self.folder / "cgroup.procs").read_text().split()]
        except FileNotFoundError:
            return []

    def all_pids(self) -> list[int]:
        """Return the processes in it and below."""
        found = []
        for folder in self._tree(self.roots[0]):
            found += Cgroup(str(folder.relative_to(self.roots[0])), self.roots).pids()
        return found

    def kill(self) -> None:
        """Kill every process in it and below, and remove it. What they leave on disk is to be wiped."""
        deadline = time.monotonic() + STOP_SECONDS
        while pids := self.all_pids():
            if time.monotonic() > deadline:
                raise NodeError(
                    f"these processes do not end: {pids}.", fix="see their state in /proc/PID/status; then run again"
                )
            send(pids, signal.SIGKILL)
            time.sleep(POLL_SECONDS)
        for root in self.roots:
            for folder in reversed(self._tree(root)):
                with contextlib.suppress(FileNotFoundError):
                    folder.rmdir()

    def _tree(self, root: Path) -> list[Path]:
        return [Path(folder) for folder, _, _ in os.walk(root / self.path)]


def send(pids: list[int], number: signal.Signals) -> None:
    """Signal processes, those that have ended meanwhile left out."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _hierarchies(mountinfo: str) -> tuple[list[Path], list[Path], Path | None]:
    unified, v1, tracking = [], [], None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        folder = Path(before.split()[4])
        kind, _, options = after.split()[:3]
        if kind == "cgroup2":
            unified.append(folder)
        elif kind == "cgroup" and folder not in v1:
            v1.append(folder)
            if TRACKING_V1 in options.split(","):
                tracking = folder
    return unified, v1, tracking
