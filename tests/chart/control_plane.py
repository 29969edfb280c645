"""A control plane that also has controllers, for tests that install, break and remove the chart.

No node, so no pod runs; admission, authorisation, aggregation of roles, garbage collection and Helm are the
real ones.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2

from harness.control_plane import control_plane as api_server
from harness.control_plane import program
from harness.tenant import eventually

STOP_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said."""

    status: int
    body: dict[str, Any]

    @property
    def allowed(self) -> bool:
        """Whether nobody refused."""
        return self.status < httpx2.codes.BAD_REQUEST

    @property
    def message(self) -> str:
        """The server's words."""
        return str(self.body.get("message", ""))


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A running API server and how to speak to it."""

    kubeconfig: Path
    client: httpx2.Client

    def call(self, method: str, path: str, body: Any = None, *, user: str = "", groups: tuple[str, ...] = ()) -> Answer:
        """Make one request, as the administrator or as somebody he impersonates."""
        headers = [("Content-Type", _content_type(method, path))]
        if user:
            headers += [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
        content = None if body is None else json.dumps(body)
        answer = self.client.request(method, path, content=content, headers=headers)
        decoded: Any = answer.json() if answer.content[:1] == b"{" else {"message": answer.text}
        return Answer(answer.status_code, decoded)

    def must(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Make one request as the administrator that has to succeed."""
        answer = self.call(method, path, body)
        assert answer.allowed, f"{method} {path}: {answer.status} {answer.message}"
        return answer.body

    def run(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run kubectl or helm against it."""
        done = subprocess.run(
            [program(argv[0]), *argv[1:]],
            text=True,
            capture_output=True,
            check=False,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr}{done.stdout}")
        return done


def _content_type(method: str, path: str) -> str:
    if method != "PATCH":
        return "application/json"
    # Custom resources know no strategic merge.
    return f"application/{'' if path.startswith('/apis/sandyard.dev') else 'strategic-'}merge-patch+json"


@contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    """Start one in a folder and end it afterwards."""
    with api_server(folder) as server, _controllers(folder, server.kubeconfig):
        plane = ControlPlane(server.kubeconfig, server.client)
        # Made by a controller; no pod can be created before it is there.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        eventually(lambda: plane.call("GET", account), lambda answer: answer.allowed)
        yield plane


@contextmanager
def _controllers(folder: Path, kubeconfig: Path) -> Iterator[None]:
    argv = [
        program("kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={folder / 'accounts.key'}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--secure-port=0",
    ]
    log = (folder / "kube-controller-manager.log").open("w")
    with log, subprocess.Popen(argv, stdout=log, stderr=log) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
