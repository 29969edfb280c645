"""The release's life on a cluster of its own, with a real node: what runs, what a policy lets in, what goes."""

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any, Final

import pytest

from chart.release import CHART, NAMESPACE, OPERATOR, RELEASE
from chart.test_rights import OPERATOR_ANYWHERE, OPERATOR_AT_HOME, rows
from harness.control_plane import program
from harness.plain import plain_pod
from harness.tenant import Tenant, eventually, new_tenant
from yard.bring_up import images
from yard.steps import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]  # a first build of images is among it

CLUSTER: Final = {"SANDYARD_NODE_NAME": "chart", "SANDYARD_NODE_RANGE": "198.19.128.0/18"}
SYSTEM: Final = Tenant(NAMESPACE)
SELECTOR: Final = "app.kubernetes.io/component=operator"
REACH: Final = """
import socket, sys, time
deadline = time.monotonic() + 30  # a policy takes a moment to be in force for a new pod
def is_open(port):
    try:
        socket.create_connection((sys.argv[1], int(port)), timeout=5).close()
    except OSError:
        return False
    return True
while not is_open(sys.argv[2]) and time.monotonic() < deadline:
    time.sleep(0.2)
for port in sys.argv[2:]:
    print(port, "open" if is_open(port) else "closed")
"""


def make(*verbs: str) -> str:
    """Run verbs of the Makefile for this cluster."""
    done = subprocess.run(
        ["make", "-s", *verbs],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "KUBECONFIG"} | CLUSTER,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def found() -> Iterator[dict[str, Any]]:
    """Bring a second cluster up with the images of this checkout, give their references, and take it down."""
    make("cluster", "images")
    found = images()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", make("kubeconfig").strip())
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        namespace["metadata"] |= {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}  # type: ignore[operator]
        SYSTEM.kubectl("apply", "-f", "-", stdin=json.dumps(namespace))
        helm("uninstall", "--no-hooks", "--ignore-not-found")  # of a run that was cut off
        yield found
    make("cluster-down")


@pytest.fixture(autouse=True)
def release(found: dict[str, Any]) -> Iterator[None]:
    """Install the release for one test, and remove it."""
    upgrade(found)
    yield
    helm("uninstall", "--ignore-not-found")


def helm(verb: str, *args: str) -> str:
    """Run helm on the release."""
    command = [program("helm"), verb, RELEASE, "--namespace", NAMESPACE, *args]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def upgrade(found: dict[str, Any], *args: str) -> None:
    """Install or upgrade with two operators, and wait until both are ready."""
    values = [
        f"operator.image={found['operator']['digestRef']}",
        f"defaultClass.image={found['runtime']['digestRef']}",
        "operator.replicas=2",
        *args,
    ]
    helm("upgrade", "--install", str(CHART), "--set", ",".join(values))
    SYSTEM.kubectl("rollout", "status", "deployment/sandyard-operator", "--timeout=120s")


def operators() -> list[dict[str, Any]]:
    """Return the operator's pods that stay."""
    listed = SYSTEM.kubectl("get", "pods", "-l", SELECTOR, "-o", "json").stdout
    return [pod for pod in json.loads(listed)["items"] if "deletionTimestamp" not in pod["metadata"]]


def started(tenant: Tenant, code: str) -> str:
    """Create a task and wait until its script runs."""
    name = tenant.task(code)
    eventually(lambda: tenant.get(name).get("status", {}).get("phase"), lambda phase: phase == "Running", seconds=60)
    return name


def test_two_operators_run_in_a_namespace_that_enforces_restricted_and_one_of_them_leads() -> None:
    names = [pod["metadata"]["name"] for pod in operators()]
    assert len(names) == 2
    lease = eventually(lambda: SYSTEM.get("sandyard-operator", "lease"), lambda found: found["spec"]["holderIdentity"])
    assert any(lease["spec"]["holderIdentity"].startswith(name) for name in names)
    assert SYSTEM.get("sandyard-operator", "pdb")["status"]["disruptionsAllowed"] == 1


@pytest.mark.parametrize(
    ("namespace", "golden"), [("default", OPERATOR_ANYWHERE), (NAMESPACE, OPERATOR_AT_HOME)], ids=["tenant", "own"]
)
def test_its_rights_are_the_golden_ones(namespace: str, golden: set[str]) -> None:
    def listed(user: str) -> set[str]:
        return rows(Tenant(namespace).kubectl("auth", "can-i", "--list", f"--as={user}").stdout)

    assert listed(OPERATOR) - listed("system:serviceaccount:default:nobody") == golden


def test_a_pod_reaches_the_operators_metrics_and_not_its_probes(found: dict[str, Any]) -> None:
    address = operators()[0]["status"]["podIP"]
    command = ["/usr/bin/python3.13", "-c", REACH, address, "9090", "8081"]
    with new_tenant("metrics") as tenant:
        guarded = plain_pod(tenant, found["runtime"]["digestRef"], name="guarded", command=command)
        SYSTEM.kubectl("delete", "networkpolicy", "sandyard-operator")
        control = plain_pod(tenant, found["runtime"]["digestRef"], name="control", command=command)
    assert guarded.splitlines() == ["9090 open", "8081 closed"]
    assert control.splitlines() == ["9090 open", "8081 open"]


def test_an_upgrade_replaces_the_operators_while_a_task_runs_to_its_end(found: dict[str, Any]) -> None:
    before = {pod["metadata"]["uid"] for pod in operators()}
    with new_tenant("upgrade") as tenant:
        name = started(tenant, "import time; time.sleep(15); print('through')")
        upgrade(found, "operator.logLevel=debug")
        status = tenant.finished(name)
    assert not before & {pod["metadata"]["uid"] for pod in operators() if "deletionTimestamp" not in pod["metadata"]}
    assert (status["reason"], status["result"]["stdout"]["text"]) == ("Succeeded", "through\n")


def test_an_uninstall_leaves_no_pod_policy_or_key_and_a_later_install_tells_what_became_of_the_task(
    found: dict[str, Any],
) -> None:
    with new_tenant("uninstall") as tenant:
        name = started(tenant, "import time; time.sleep(600)")
        helm("uninstall")
        assert tenant.pods() == []
        for kind in ("networkpolicies", "secrets"):
            assert tenant.kubectl("get", kind, "-o", "name").stdout == ""
        assert SYSTEM.kubectl("get", "pods,leases,jobs,serviceaccounts", "-o", "name").stdout.split() == [
            "serviceaccount/default"
        ]
        assert "sandyard" not in SYSTEM.kubectl("get", "secrets", "-o", "name").stdout
        assert "completionTime" not in tenant.get(name)["status"]
        upgrade(found)
        status = tenant.finished(name)
        assert status["reason"] == "PodDeleted"
        assert "may have run" in status["message"]
