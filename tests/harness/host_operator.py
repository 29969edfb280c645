"""Operators outside the cluster: child processes that stand in the first node's network as its daemons do.

There the node's own right to reach its pods lets them through every NetworkPolicy, and Services and the cluster's DNS
answer. They act with the rights of the chart's service account and no others.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.operator_process import FAULT, RECORD, Fault
from harness.tenant import Tenant
from sandyard_node import network
from sandyard_node.settings import Settings

SYSTEM: Final = Tenant("sandyard-system")
OPERATOR: Final = "sandyard-operator"  # Deployment and service account
FIRST_PORT: Final = 21_000
# A private view of the mounts, so that the cluster's DNS is asked by this process alone.
WITH_DNS: Final = 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'


def node_network() -> list[str]:
    """Return the command prefix that enters the network of the cluster's first node."""
    settings = Settings.from_environment()
    if settings.runs_own_node:
        return network.enter(settings.node(1))
    inspect = ["docker", "inspect", "--format", "{{.State.Pid}}", f"{settings.name}-control-plane"]
    pid = subprocess.run(inspect, text=True, capture_output=True, check=True).stdout.strip()
    return ["nsenter", f"--net=/proc/{pid}/ns/net", "--"]


@dataclass(slots=True)
class HostOperator:
    """One operator process."""

    process: subprocess.Popen[str]
    record: Path
    log: Path

    def begin(self) -> None:
        """Let it run, now that its imports are done."""
        if self.process.stdin:
            self.process.stdin.write("\n")
            self.process.stdin.flush()

    @property
    def calls(self) -> list[str]:
        """Return the names of the calls counted."""
        return [line.removeprefix("call ") for line in self._lines if line.startswith("call ")]

    @property
    def struck(self) -> str:
        """Return where the fault struck; empty if it did not."""
        return next((line.removeprefix("struck ") for line in self._lines if line.startswith("struck ")), "")

    @property
    def outcome(self) -> str:
        """Return what became of the call at which the fault struck, once the process went on."""
        lines = self._lines
        where = next((number for number, line in enumerate(lines) if line.startswith("struck ")), len(lines))
        call = lines[where].partition(" ")[2].partition(" ")[2] if where < len(lines) else ""
        later = (line for line in lines[where + 1 :] if not line.startswith("call "))
        return next((line for line in later if call and line.endswith(f" {call}")), "")

    @property
    def _lines(self) -> list[str]:
        return self.record.read_text().splitlines() if self.record.exists() else []


@dataclass(slots=True)
class HostOperators:
    """Starts operators and ends them all."""

    folder: Path
    kubeconfig: Path
    resolver: Path
    started: list[HostOperator] = field(default_factory=list)

    def start(self, fault: Fault | None = None, *, pod: str = "host-a") -> HostOperator:
        """Start an operator that waits for ``begin``; of one ``pod`` only one at a time."""
        number = len(self.started)
        record, log = self.folder / f"{number}.calls", self.folder / f"{number}.log"
        port = FIRST_PORT + 2 * (number % 100)
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "SANDYARD_NAMESPACE": SYSTEM.namespace,
            "SANDYARD_POD_NAME": pod,
            "SANDYARD_METRICS_PORT": str(port),
            "SANDYARD_PROBE_PORT": str(port + 1),
            RECORD: str(record),
            **({FAULT: str(fault)} if fault else {}),
        }
        program = [sys.executable, "-m", "harness.operator_process"]
        mounts = ["unshare", "--mount", "--propagation=private", "sh", "-c", WITH_DNS, "sh", str(self.resolver)]
        with log.open("w") as output:
            process = subprocess.Popen(
                [*node_network(), *mounts, *program],
                env=environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        operator = HostOperator(process, record, log)
        self.started.append(operator)
        return operator

    def end(self) -> None:
        """Kill what still runs."""
        for operator in self.started:
            operator.process.kill()
            operator.process.communicate()


@contextmanager
def host_operators(folder: Path) -> Iterator[HostOperators]:
    """Take the place of the chart's operators, and give it back."""
    replicas = SYSTEM.get(OPERATOR, "deployment")["spec"]["replicas"] or 1  # none where a run of this was cut off
    operators = HostOperators(folder, folder / "kubeconfig", folder / "resolv.conf")
    operators.kubeconfig.write_text(json.dumps(_kubeconfig()))
    dns = Tenant("kube-system").get("kube-dns", "service")["spec"]["clusterIP"]
    operators.resolver.write_text(f"nameserver {dns}\n")
    _scale(0)
    SYSTEM.kubectl("wait", "pod", "-l", "app.kubernetes.io/component=operator", "--for=delete", "--timeout=60s")
    try:
        yield operators
    finally:
        operators.end()
        _scale(replicas)
        SYSTEM.kubectl("rollout", "status", f"deployment/{OPERATOR}", "--timeout=120s")


def _scale(replicas: int) -> None:
    SYSTEM.kubectl("scale", f"deployment/{OPERATOR}", f"--replicas={replicas}")


def _kubeconfig() -> dict[str, Any]:
    """Return the administrator's kubeconfig with the service account in the administrator's place."""
    found: dict[str, Any] = json.loads(SYSTEM.kubectl("config", "view", "--minify", "--raw", "-o", "json").stdout)
    token = SYSTEM.kubectl("create", "token", OPERATOR, "--duration=2h").stdout.strip()
    found["users"][0]["user"] = {"token": token}
    return found
