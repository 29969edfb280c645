"""A real supervisor as PID 1 of a room, and this test as the agent at the other end of its channel."""

import contextlib
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from sandyard_api import names
from sandyard_runtime import wire

DEADLINE_SECONDS: Final = 30.0
RUNTIME: Final = Path(__file__).parents[2] / "runtime"
ROOM: Final = Path(__file__).parent / "room.py"
LOOK_SECONDS: Final = 0.1
PIECE_BYTES: Final = 512 * 1024
NAMESPACES: Final = ("--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "--kill-child", "--propagation=private")
LIMITS: Final = {
    "stdoutBytes": 1 << 20,
    "stderrBytes": 256 << 10,
    "artifactBytes": 16 << 20,
    "diskBytes": 64 << 20,
    "openFiles": 4096,
    "processes": 256,
    "artifactCount": 256,
}


@dataclass(slots=True)
class End:
    """Everything a supervisor said of a run."""

    started: dict[str, Any] = field(default_factory=dict)
    exited: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    stdout: bytes = b""
    stderr: bytes = b""
    artifacts: dict[str, bytes] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """How it ended."""
        return str(self.exited["outcome"])

    @property
    def text(self) -> str:
        """What it printed."""
        return self.stdout.decode()


@functools.cache
def interpreter() -> Path:
    """Return the prefix of the newest Python of a runner this machine has: 3.13, else the one of these tests."""
    found = sorted(Path("~/.pyenv/versions").expanduser().glob("3.13.*"))
    if found:
        return found[-1]
    program = shutil.which("python3.13")
    asked = [program or sys.executable, "-c", "import sys; print(sys.base_prefix)"]
    return Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())


def python() -> str:
    """Return the runner's Python as the room has it, whose /usr has the interpreter's own prefix on top."""
    programs = (interpreter() / "bin").glob("python3.*")
    return f"/usr/bin/{max(path.name for path in programs if path.suffix[1:].isdigit())}"


class Room:
    """Starts programs in a room; its folders live below ``base``."""

    def __init__(
        self,
        base: Path,
        *,
        binds: Sequence[tuple[str, str]] = (),
        cgroups: Sequence[Path] = (),
        user_namespace: bool = False,
    ) -> None:
        self.base = base
        self.control = base / "control"
        self.site = base / "packages" / "site"
        self.image_site = base / "image-site"
        packages = base / "usr/lib" / Path(python()).name / "site-packages"
        for folder in (base / "root", self.control, self.site, self.image_site, packages):
            folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(RUNTIME.parent / "images/runtime/sandyard.pth", packages)
        self._binds = [
            (str(RUNTIME / "src/sandyard_runtime"), f"{names.RUNTIME_SOURCE_DIR}/sandyard_runtime"),
            (str(RUNTIME / "runner/__main__.py"), f"{names.RUNTIME_SOURCE_DIR}/__main__.py"),
            (str(self.control), names.CONTROL_DIR),
            (str(base / "packages"), names.PACKAGES_DIR),
            (str(self.image_site), names.IMAGE_SITE),
            *binds,
        ]
        self._user_namespace = user_namespace
        self._cgroups = [str(each) for each in cgroups]

    def start(self, command: Sequence[str], **options: Any) -> "subprocess.Popen[str]":
        """Start a program as PID 1 of the room."""
        plan = {
            "root": str(self.base / "root"),
            "usr": ":".join(dict.fromkeys((str(self.base / "usr"), str(interpreter()), "/usr"))),
            "binds": self._binds,
            "cgroups": self._cgroups,
            "userNamespace": self._user_namespace,
            "uid": names.RUNNER_UID,
            "volumeSize": "256m",
            "command": list(command),
            "environment": {"PATH": "/usr/local/bin:/usr/bin:/bin", "POD_SETTING": "not for a script"},
        }
        room = [sys.executable, "-I", "-S", str(ROOM), json.dumps(plan)]
        return subprocess.Popen(["unshare", *NAMESPACES, *room], text=True, **options)

    def processes(self, runner: "Runner") -> int:
        """Return how many processes are in the room."""
        assert runner.process is not None
        inside = Path(f"/proc/{_first_inside(runner.process.pid)}/ns/pid").readlink()
        found = 0
        for each in Path("/proc").glob("[0-9]*/ns/pid"):
            with contextlib.suppress(OSError):
                found += each.readlink() == inside
        return found

    def signal(self, process: "subprocess.Popen[str]", number: int) -> None:
        """Send a signal to the room's PID 1, from outside as a kubelet would, once it is the program given."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (found := _first_inside(process.pid)):
            if process.poll() is not None:
                return
            assert time.monotonic() < deadline, "the room does not come up"
            time.sleep(LOOK_SECONDS)
        os.kill(found, number)


def _first_inside(unshare: int) -> int:
    """Return the pid of a room's PID 1 as this machine sees it, 0 while it is still furnishing the room."""
    try:
        children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
        furnished = [child for child in children if str(ROOM) not in Path(f"/proc/{child}/cmdline").read_text()]
    except OSError:  # it ends at this very moment
        return 0
    return int(furnished[0]) if furnished else 0


class Runner:
    """A supervisor with its channel; a context manager that ends it."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.ready: dict[str, Any] = {}
        self.process: subprocess.Popen[str] | None = None
        self._decoder = wire.Decoder()
        self._frames: list[wire.Frame] = []

    def __enter__(self) -> Self:
        path = self.room.control / Path(names.CONTROL_SOCKET).name
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.settimeout(LOOK_SECONDS)
            listener.bind(str(path))
            path.chmod(0o666)
            listener.listen()
            command = [python(), *names.SUPERVISOR_COMMAND[1:]]
            self.process = self.room.start(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            self.socket = self._accept(listener)
        path.unlink()
        self.socket.settimeout(DEADLINE_SECONDS)
        self.ready = self.receive().header
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        assert self.process is not None
        try:
            self.process.wait(DEADLINE_SECONDS)
        finally:
            self.process.kill()
            self.log = self.process.communicate()[1]

    def _accept(self, listener: socket.socket) -> socket.socket:
        assert self.process is not None
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            try:
                return listener.accept()[0]
            except TimeoutError:
                assert self.process.poll() is None, self.process.communicate()[1]
        raise TimeoutError("the supervisor does not connect")

    def send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        """Send a frame."""
        self.socket.sendall(wire.encode(dict(header), payload))

    def receive(self) -> wire.Frame:
        """Return the next frame."""
        while not self._frames:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError("the supervisor closed the channel")
            self._frames = self._decoder.feed(data)
        return self._frames.pop(0)

    def place(self, files: Mapping[str, bytes]) -> wire.Frame:
        """Put files into the workspace."""
        for path, data in files.items():
            self._send_blob({"type": "file", "path": path}, data)
        self.send({"type": "place"})
        return self.receive()

    def start(self, code: str | bytes, *, stdin: bytes = b"", timeout: float = 20.0, **more: Any) -> None:
        """Ask for a run; ``more`` may hold args, env, egress, limits to change and a frame to slip in."""
        header = {
            "type": "start",
            "runId": "run-1",
            "limits": LIMITS | more.get("limits", {}),
            "egress": more.get("egress", False),
            "timeoutSeconds": timeout,
        }
        words = {"args": list(more.get("args", ())), "env": dict(more.get("env", {}))}
        self.send(header, json.dumps(words).encode())
        if "before_code" in more:
            self.send(more["before_code"])
        self._send_blob({"type": "code"}, code.encode() if isinstance(code, str) else code)
        self._send_blob({"type": "stdin"}, stdin)

    def wait_for(self, text: str, end: End) -> None:
        """Take reports until the script has printed this."""
        while text not in end.text:
            assert not self.take(end), end

    def wait_until_alone(self) -> None:
        """Read nothing until the supervisor has killed every other process."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.room.processes(self) > 1:
            assert time.monotonic() < deadline, "something lives on"
            time.sleep(LOOK_SECONDS)

    def take(self, end: End) -> bool:
        """Take one report; true after the last."""
        frame = self.receive()
        end.order.append(frame.kind)
        header = frame.header
        match frame.kind:
            case "started":
                end.started = header
            case "output" if header["stream"] == "stdout":
                end.stdout += frame.payload
            case "output":
                end.stderr += frame.payload
            case "exited":
                end.exited = header
            case "artifact":
                end.artifacts[header["path"]] = end.artifacts.get(header["path"], b"") + frame.payload
            case "finished":
                end.warnings = header.get("warnings", [])
                return True
            case unknown:
                raise AssertionError(f"a frame of type {unknown}")
        return False

    def finish(self, end: End | None = None) -> End:
        """Take reports to the last."""
        end = end or End()
        deadline = time.monotonic() + 3 * DEADLINE_SECONDS
        while not self.take(end):
            assert time.monotonic() < deadline, end.order[-10:]
        return end

    def run(self, code: str | bytes, **options: Any) -> End:
        """Run a script to its end."""
        self.start(code, **options)
        return self.finish()

    def _send_blob(self, header: Mapping[str, Any], data: bytes) -> None:
        for offset in range(0, max(len(data), 1), PIECE_BYTES):
            piece = data[offset : offset + PIECE_BYTES]
            self.send({**header, "last": offset + len(piece) == len(data)}, piece)
