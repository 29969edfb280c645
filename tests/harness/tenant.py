"""A tenant's view of the cluster: namespaces, kubectl and tasks.

Expects a cluster with the chart and the private index installed, as ``make test`` leaves it; KUBECONFIG says
where. Everything is done through kubectl, as a user does it.
"""

import json
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

FINISH_SECONDS = 120  # the longest a test waits for an ordinary task
POLL_SECONDS = 0.1
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tenant:
    """One namespace and what a user does in it."""

    namespace: str

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run kubectl in this namespace."""
        done = subprocess.run(
            ["kubectl", "-n", self.namespace, *args],
            input=stdin,
            text=True,
            capture_output=True,
            check=False,
            timeout=300,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(args)} ended with {done.returncode}: {done.stderr or done.stdout}")
        return done

    def create(self, manifest: Mapping[str, Any], *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Create one object."""
        return self.kubectl("create", "-f", "-", stdin=json.dumps(manifest), check=check)

    def task(self, code: str | None = None, *, name: str | None = None, **spec: Any) -> str:
        """Create a SandboxTask and return its name."""
        name = name or f"t-{uuid.uuid4().hex[:8]}"
        self.create(task_manifest(name, code, **spec))
        return name

    def get(self, name: str, kind: str = "sbt") -> dict[str, Any]:
        """Read an object."""
        return json.loads(self.kubectl("get", kind, name, "-o", "json").stdout)

    def finished(self, name: str, *, seconds: float = FINISH_SECONDS) -> dict[str, Any]:
        """Wait until a task is finished and return its status."""
        self.kubectl("wait", "--for=condition=Finished", f"sbt/{name}", f"--timeout={seconds:g}s")
        return self.get(name)["status"]

    def run(self, code: str | None = None, *, seconds: float = FINISH_SECONDS, **spec: Any) -> dict[str, Any]:
        """Create a task, wait for its end and return its status."""
        return self.finished(self.task(code, **spec), seconds=seconds)

    def pods(self) -> list[dict[str, Any]]:
        """Return the sandbox pods of this namespace."""
        answer = self.kubectl("get", "pods", "-l", "sandyard.dev/role", "-o", "json").stdout
        return json.loads(answer)["items"]

    def config_map(self, data: Mapping[str, str], *, name: str | None = None) -> str:
        """Create a ConfigMap and return its name."""
        name = name or f"c-{uuid.uuid4().hex[:8]}"
        self.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict(data)})
        return name


def task_manifest(name: str, code: str | None = None, **spec: Any) -> dict[str, Any]:
    """Return a SandboxTask as a user would write it."""
    if code is not None:
        spec["code"] = code
    return {
        "apiVersion": "sandyard.dev/v1alpha1",
        "kind": "SandboxTask",
        "metadata": {"name": name},
        "spec": spec,
    }


def eventually(read: Callable[[], T], accept: Callable[[T], bool], *, seconds: float = FINISH_SECONDS) -> T:
    """Read until the value is accepted; fail with the last value at the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        value = read()
        if accept(value):
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not seen within {seconds} s; last: {value!r}")
        time.sleep(POLL_SECONDS)


@contextmanager
def new_tenant(prefix: str = "e2e") -> Iterator[Tenant]:
    """Make a namespace and delete it afterwards, without waiting for its end."""
    tenant = Tenant(f"{prefix}-{uuid.uuid4().hex[:8]}")
    subprocess.run(["kubectl", "create", "namespace", tenant.namespace], check=True, capture_output=True)
    try:
        yield tenant
    finally:
        subprocess.run(
            ["kubectl", "delete", "namespace", tenant.namespace, "--wait=false"],
            check=True,
            capture_output=True,
        )
