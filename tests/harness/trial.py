"""One task in a namespace of its own, an operator that a fault strikes meanwhile, and what must hold at the end."""

import json
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from harness.host_operator import HostOperator
from harness.tenant import POLL_SECONDS, Tenant, eventually
from harness.witness import ADDRESS, Witness, testimony
from sandyard_api import names

SIX: Final = '# /// script\n# dependencies = ["six==1.17.0"]\n# ///\nimport six\n'
SIX_PACKAGE: Final = {"name": "six", "version": "1.17.0"}
STRIKE_SECONDS: Final = 90
GONE_SECONDS: Final = 60
TASK: Final = "witnessed"
LAST_CALL: Final = "delete pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A task and the operator that is struck while it works on it."""

    tenant: Tenant
    operator: HostOperator
    head: str = ""  # of the script
    tail: str = ""

    def create(self, class_name: str) -> None:
        """Create the task."""
        code = f"{self.head}{testimony(self.tenant.namespace)}print('ran', flush=True)\n{self.tail}"
        network = {"egress": [{"cidr": f"{ADDRESS}/32"}]}
        self.tenant.task(code, name=TASK, sandboxClassName=class_name, network=network)

    def finish(self) -> None:
        """Wait until the task is finished, by whatever operator is at work."""
        eventually(self.status, lambda status: "completionTime" in status, seconds=STRIKE_SECONDS)

    def status(self) -> dict[str, Any]:
        """Read the task's status."""
        status: dict[str, Any] = self.tenant.get(TASK).get("status", {})
        return status

    def strike(self) -> bool:
        """Wait until the fault struck; False where the task was over before."""
        deadline = time.monotonic() + STRIKE_SECONDS
        while not self.operator.struck:
            assert self.operator.process.poll() is None, self.operator.log.read_text()
            assert time.monotonic() < deadline, (self.operator.calls, self.tenant.pods())
            if LAST_CALL in self.operator.calls and "completionTime" in self.status() and not self.tenant.pods():
                return bool(self.operator.struck)
            time.sleep(POLL_SECONDS)
        return True


def check(trials: Iterable[Trial], witness: Witness) -> None:
    """Nothing lost, nothing twice, nothing left; expects an operator at work."""
    by_namespace = {trial.tenant.namespace: trial for trial in trials}
    eventually(lambda: _unfinished(by_namespace), lambda left: not left)
    for task in _all("sbt", by_namespace):
        namespace, status = task["metadata"]["namespace"], task["status"]
        trial = by_namespace[namespace]
        where = f"{trial.operator.struck or 'no strike'}: {json.dumps(status)}"
        assert (status["phase"], status["reason"]) == ("Succeeded", "Succeeded"), where
        assert status["result"]["exitCode"] == 0, where
        assert status["result"]["stdout"]["text"] == "ran\n", where
        assert status["run"]["attempt"] == 1, where
        assert {c["type"]: c["status"] for c in status["conditions"]} == dict.fromkeys(
            ("Accepted", "Scheduled", "Installed", "Finished", "Succeeded"), "True"
        ), where
        packages = [{key: package[key] for key in SIX_PACKAGE} for package in status["packages"]]
        assert packages == ([SIX_PACKAGE] if trial.head else []), where
        assert witness.starts()[namespace] == 1, where
    eventually(lambda: _all("pods", by_namespace), lambda pods: not pods, seconds=GONE_SECONDS)
    for namespace in by_namespace:
        Tenant(namespace).kubectl("delete", "sbt", TASK, "--wait=false")
    own = {f"secrets/{names.SECRET_AGENT_TLS}", f"networkpolicies/{names.POLICY_ISOLATE}"}
    own.add(f"networkpolicies/{names.POLICY_INSTALL_PREFIX}witnessed")
    eventually(lambda: _left(by_namespace), lambda left: set(left.values()) <= {frozenset(own)}, seconds=GONE_SECONDS)
    assert {name: witness.starts()[name] for name in by_namespace} == dict.fromkeys(by_namespace, 1)


def _unfinished(namespaces: Iterable[str]) -> list[str]:
    tasks = _all("sbt", namespaces)
    return [t["metadata"]["namespace"] for t in tasks if "completionTime" not in t.get("status", {})]


def _left(namespaces: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return what of ours each namespace holds."""
    kinds = ("secrets", "networkpolicies", "pods", "configmaps", "sbt")
    found: dict[str, set[str]] = {namespace: set() for namespace in namespaces}
    for kind in kinds:
        for raw in _all(kind, found):
            if raw["metadata"]["name"] != "kube-root-ca.crt":
                found[raw["metadata"]["namespace"]].add(f"{kind}/{raw['metadata']['name']}")
    return {namespace: frozenset(objects) for namespace, objects in found.items()}


def _all(kind: str, namespaces: Iterable[str]) -> list[dict[str, Any]]:
    wanted = set(namespaces)
    read = ["kubectl", "get", kind, "--all-namespaces", "-o", "json"]
    listed = subprocess.run(read, text=True, capture_output=True, check=True).stdout
    return [item for item in json.loads(listed)["items"] if item["metadata"]["namespace"] in wanted]
