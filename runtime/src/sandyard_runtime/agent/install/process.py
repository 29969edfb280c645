"""The installer's processes: started, told to go on, listened to, and then truly gone.

Nothing of them outlives ``end``. Whatever they fork becomes this process's own when its parent dies, so the end is
reached when this process has no child left; the installer is the only one it ever has.
"""

import asyncio
import ctypes
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

PR_SET_CHILD_SUBREAPER: Final = 36
STDERR_BYTES: Final = 64 * 1024  # kept of what uv prints; its last words tell the reason
REAP_SECONDS: Final = 0.005  # between looks at processes that were killed and have yet to go
CHILDREN: Final = Path("/proc/thread-self/children")  # of the loop's thread, which alone forks
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
    """The processes of one install."""

    def __init__(self, process: "subprocess.Popen[bytes]", answers: asyncio.StreamReader) -> None:
        self._process = process
        self._answers = answers
        self._stderr = b""
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def launch(cls, plan: Plan) -> "Installer":
        """Start the first of them; orphans become ours."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        told = {
            "source": str(SOURCE),
            "commands": plan.commands,
            "readable": plan.readable,
            "writable": plan.writable,
            "max_file_bytes": plan.max_file_bytes,
        }
        # Not asyncio's own: its wait does not end while an orphan holds a pipe.
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - a fork, no wait; our own program
            [sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(told)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=plan.environment,
            cwd=plan.directory,
            start_new_session=True,
        )
        return cls(process, await _reader(process.stdout))

    @property
    def stderr(self) -> str:
        """The last of what was printed."""
        return self._stderr.decode(errors="replace")

    async def step(self) -> int:
        """Run the next command; return its exit code, negative for a signal or a launcher that failed."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(b"\n")
        line = await self._answers.readline()
        return int(line) if line else -1

    async def end(self) -> None:
        """Kill and reap them all."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        while kill_children():  # noqa: ASYNC110 - the kernel tells nobody that an orphan died
            await asyncio.sleep(REAP_SECONDS)
        self._process.poll()  # it is reaped already; let its object know
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._listening

    async def _listen(self) -> None:
        stderr = await _reader(self._process.stderr)
        while data := await stderr.read(STDERR_BYTES):
            self._stderr = (self._stderr + data)[-STDERR_BYTES:]


async def _reader(pipe: IO[bytes] | None) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


def kill_children() -> bool:
    """Kill this process's children and reap the dead; tell whether one is left."""
    with suppress(FileNotFoundError):  # a kernel that does not list them; the group was killed before
        for child in CHILDREN.read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
