"""kubectl against one cluster, and waiting until what it reads is as wanted."""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sandyard_node.errors import NodeError

POLL_SECONDS: Final = 0.2
CALL_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Kubectl:
    """One cluster's kubectl."""

    program: Path | str
    kubeconfig: Path

    def __call__(self, *args: str, stdin: str | None = None) -> str:
        """Run it and return its output; raise with what it said when it fails."""
        done = self._run(*args, stdin=stdin)
        if done.returncode != 0:
            raise NodeError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def succeeds(self, *args: str) -> bool:
        """Tell whether it ends well."""
        return self._run(*args).returncode == 0

    def apply(self, manifest: str) -> None:
        """Apply objects, whoever wrote their fields before."""
        self("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest)

    def _run(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(self.program), f"--kubeconfig={self.kubeconfig}", *args]
        try:
            return subprocess.run(
                command, input=stdin, text=True, capture_output=True, check=False, timeout=CALL_SECONDS
            )
        except FileNotFoundError as error:
            raise NodeError(f"{self.program} is not there.", fix="install kubectl") from error
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 1, "", f"no answer within {CALL_SECONDS} s")


def wait_until(what: str, accept: Callable[[], bool], *, seconds: float, fix: str = "") -> None:
    """Poll until it is so; raise at the deadline."""
    deadline = time.monotonic() + seconds
    while not accept():
        if time.monotonic() > deadline:
            raise NodeError(f"{what}: not within {seconds:g} s.", fix=fix)
        time.sleep(POLL_SECONDS)
