"""Start, find and stop the long-running programs of a node.

Each has a cgroup of its own, which it enters before it becomes the program. The digest of everything it was started
with is in its environment, so a second ``up`` can tell a daemon that may stay from one that must be started anew,
and no file can be stale.
"""

import hashlib
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sandyard_node import network
from sandyard_node.cgroups import POLL_SECONDS, Cgroup, send
from sandyard_node.errors import NodeError
from sandyard_node.host import SYSTEM_PATH
from sandyard_node.settings import Node, Settings

DIGEST: Final = "SANDYARD_DIGEST"
ENTER_CGROUP: Final = 'echo $$ > "$1/cgroup.procs" && shift && exec "$@"'
GRACE_SECONDS: Final = 10  # an API server that stops serves its last requests
LOG_TAIL_LINES: Final = 15


@dataclass(frozen=True, slots=True)
class Daemon:
    """One program on one node; the files are the configuration it reads at start."""

    node: Node
    program: str
    arguments: tuple[str, ...]
    files: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """As status and log files call it."""
        return f"{self.node.name}-{self.program}"


@dataclass(frozen=True, slots=True)
class Daemons:
    """The daemons of one cluster."""

    settings: Settings
    cgroup: Cgroup

    @classmethod
    def of(cls, settings: Settings) -> "Daemons":
        """Return those of a cluster."""
        return cls(settings, Cgroup.find(settings.cgroup))

    def ensure(self, daemon: Daemon) -> bool:
        """Start a daemon unless it runs as wanted; tell whether it was started."""
        digest = self._digest(daemon)
        running = self.pid(daemon)
        if running and _environment(running).get(DIGEST) == digest:
            return False
        if running:
            self.stop([daemon])
        group = self._group(daemon)
        group.make()
        program = (self.settings.bin / daemon.program).resolve()
        command = ["sh", "-c", ENTER_CGROUP, "sh", str(group.folder), *network.enter(daemon.node)]
        environment = {
            "PATH": f"{self.settings.bin}:{SYSTEM_PATH}",
            "HOME": str(self.settings.state),
            "GOTRACEBACK": "single",
            DIGEST: digest,
        }
        log = self.log(daemon)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*command, str(program), *daemon.arguments],
                cwd=self.settings.state,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        while self.pid(daemon) != process.pid and process.poll() is None:
            time.sleep(POLL_SECONDS)  # until the shell has become the program
        self.require(daemon)
        return True

    def pid(self, daemon: Daemon) -> int | None:
        """Return the daemon's process, if it runs."""
        return next((pid for pid in self._group(daemon).pids() if _is(pid, daemon.program)), None)

    def stop(self, daemons: Sequence[Daemon]) -> None:
        """Ask daemons to end and wait for it; kill those that do not."""
        pids = [pid for daemon in daemons if (pid := self.pid(daemon))]
        send(pids, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        while alive := [pid for pid in pids if _alive(pid)]:
            if time.monotonic() > deadline + GRACE_SECONDS:
                raise NodeError(f"these processes do not end: {alive}.", fix="see /proc/PID/status; then run again")
            if time.monotonic() > deadline:
                send(alive, signal.SIGKILL)
            time.sleep(POLL_SECONDS)

    def require(self, daemon: Daemon) -> None:
        """Refuse to go on without a daemon that has ended, and show what it said last."""
        if self.pid(daemon):
            return
        log = self.log(daemon)
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]) if log.exists() else ""
        raise NodeError(f"{tail}\n{daemon.program} ended.", fix=f"read {log}; then run the same command again")

    def log(self, daemon: Daemon) -> Path:
        """Return where a daemon's output goes."""
        return self.settings.state / "log" / f"{daemon.name}.log"

    def _group(self, daemon: Daemon) -> Cgroup:
        return Cgroup(f"{self.cgroup.path}/daemons/{daemon.name}", self.cgroup.roots[:1])

    def _digest(self, daemon: Daemon) -> str:
        program = str((self.settings.bin / daemon.program).resolve())
        parts = [program, network.namespace_id(daemon.node), *daemon.arguments]
        parts += [path.read_text() for path in daemon.files]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _is(pid: int, program: str) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name == program
    except OSError:
        return False


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _environment(pid: int) -> dict[str, str]:
    try:
        entries = Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)
