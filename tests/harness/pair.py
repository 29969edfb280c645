"""A whole pod but for Kubernetes: a real agent and a real supervisor that share its volumes."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.agent import AgentProcess
from harness.pod import Pod, installer_options
from harness.runner import Room, python
from sandyard_api import names, wire

RUN: Final = "run-1"
LIMITS: Final = wire.RunLimits(
    stdout_bytes=1 << 20,
    stderr_bytes=256 << 10,
    artifact_bytes=16 << 20,
    disk_bytes=64 << 20,
    open_files=1024,
    processes=256,
)
END_SECONDS: Final = 60.0


@dataclass
class Pair(Pod):
    """Both containers."""

    supervisor: "subprocess.Popen[str]"

    def start(self, code: bytes, *, stdin: bytes = b"", files: dict[str, bytes] | None = None, **changes: Any) -> None:
        """Stage the inputs and start the run."""
        seconds = changes.pop("seconds", 20.0)
        inputs = make_bundle(code, stdin=stdin, files=files, **changes)
        assert self.agent.call("POST", wire.PATH_BUNDLE, inputs.encode()).status == 200
        request = wire.StartRequest(epoch=1, input_digest=inputs.digest, run_timeout_seconds=seconds)
        answer = self.agent.call("POST", f"{wire.PATH_RUNS}/{RUN}", request)
        assert answer.status == 200, answer.body

    def kill_supervisor(self) -> None:
        """End the room's PID 1 as a node would."""
        children = Path(f"/proc/{self.supervisor.pid}/task/{self.supervisor.pid}/children").read_text()
        os.kill(int(children), signal.SIGKILL)

    def status(self, *, wait: int = 0) -> dict[str, Any]:
        """Return the run's state."""
        found: dict[str, Any] = self.agent.call("GET", f"{wire.PATH_RUNS}/{RUN}?wait={wait}").json()
        return found

    def result(self) -> dict[str, Any]:
        """Follow the run to its end."""
        deadline = time.monotonic() + END_SECONDS
        while (found := self.status(wait=20))["phase"] != "finished":
            assert time.monotonic() < deadline, found
        result: dict[str, Any] = found["result"]
        return result

    def run(self, code: bytes, **inputs: Any) -> dict[str, Any]:
        """Run to the end."""
        self.start(code, **inputs)
        return self.result()


def make_bundle(
    code: bytes, *, stdin: bytes = b"", files: dict[str, bytes] | None = None, **changes: Any
) -> wire.Bundle:
    """Make a run's inputs; ``changes`` go to the manifest."""
    blobs = [(wire.PartKind.CODE, code, ""), (wire.PartKind.STDIN, stdin, "")]
    blobs += [(wire.PartKind.FILE, data, path) for path, data in (files or {}).items()]
    parts = tuple(wire.part_of(kind, data, path=path) for kind, data, path in blobs)
    manifest = wire.BundleManifest(**{"salt": "s", "limits": LIMITS, "parts": parts} | changes)
    return wire.Bundle(manifest, tuple(data for _, data, _ in blobs))


@contextmanager
def pair(root: Path) -> Iterator[Pair]:
    """Run both until the block ends."""
    options = (*installer_options(), "--runner-uid", str(names.RUNNER_UID))
    with AgentProcess(root / "agent", options=options) as agent:
        shared = [(str(agent.at(path)), path) for path in (names.CONTROL_DIR, names.PACKAGES_DIR)]
        room = Room(root / "room", binds=shared)
        command = [python(), *names.SUPERVISOR_COMMAND[1:]]
        supervisor = room.start(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        try:
            found = agent.call("GET", f"{wire.PATH_STATUS}?wait=20").json()
            assert found["supervisor"] == "ready", found
            yield Pair(agent, supervisor)
        finally:
            agent.kill()  # which ends the supervisor, and with it the room
            supervisor.communicate(timeout=END_SECONDS)
