"""The installer as a process group of its own: started, told to go on, listened to, and then truly gone.

Nothing of the group outlives ``end``: it is killed and every member reaped before that returns.
"""

import asyncio
import ctypes
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PR_SET_CHILD_SUBREAPER: Final = 36
STDERR_BYTES: Final = 64 * 1024  # kept of what uv prints; its last words tell the reason
REAP_SECONDS: Final = 0.005  # between looks at processes that were killed and have yet to go
LAUNCHER: Final = Path(__file__).with_name("launcher.py")
SOURCE: Final = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the installer runs and what it may touch."""

    commands: tuple[tuple[str, ...], ...]
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    max_file_bytes: int
    environment: dict[str, str]
    directory: Path


class Installer:
    """The process group of one install."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._stderr = b""
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def launch(cls, plan: Plan) -> "Installer":
        """Start the group; orphans of it become ours."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        told = {
            "source": str(SOURCE),
            "commands": plan.commands,
            "readable": plan.readable,
            "writable": plan.writable,
            "max_file_bytes": plan.max_file_bytes,
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(LAUNCHER),
            json.dumps(told),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=plan.environment,
            cwd=plan.directory,
            start_new_session=True,
        )
        return cls(process)

    @property
    def stderr(self) -> str:
        """The last of what was printed."""
        return self._stderr.decode(errors="replace")

    async def step(self) -> int:
        """Run the next command; return its exit code, negative for a signal or a launcher that failed."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            return -1
        with suppress(ConnectionError):
            stdin.write(b"\n")
            await stdin.drain()
        line = await stdout.readline()
        return int(line) if line else -1

    async def end(self) -> None:
        """Kill and reap the whole group."""
        group = self._process.pid
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        await self._process.wait()
        while _reap(group):  # noqa: ASYNC110 - the kernel tells nobody that an orphan died
            await asyncio.sleep(REAP_SECONDS)
        await self._listening

    async def _listen(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (data := await stderr.read(STDERR_BYTES)):
            self._stderr = (self._stderr + data)[-STDERR_BYTES:]


def _reap(group: int) -> bool:
    """Reap what of the group is dead; tell whether some of it is left."""
    try:
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
