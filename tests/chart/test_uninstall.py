"""The program of the uninstall hook, with the hook's own rights, on a real API server with real controllers."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from chart.conftest import Helm
from chart.control_plane import ControlPlane
from chart.people import TEAM, settle
from chart.release import NAMESPACE, OPERATOR, install
from chart.sandbox_pods import LABEL, PODS, plain_spec, pod, restricted_spec
from chart.test_objects import OURS
from harness.tenant import eventually
from sandyard_operator.uninstall import LeftoverError
from sandyard_operator.uninstall import uninstall as remove_all

SYSTEM: Final = f"/api/v1/namespaces/{NAMESPACE}"
LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/sandyard-operator"
MINE: Final = {"app.kubernetes.io/managed-by": "sandyard"}


@pytest.fixture
def lived_in(empty_plane: ControlPlane) -> ControlPlane:
    """Give a cluster as the operator leaves it while it works."""
    install(empty_plane, "minimal")
    settle(empty_plane)
    masters = ("system:masters",)
    made = empty_plane.call("POST", PODS, pod("sandyard-0", restricted_spec(), LABEL), user=OPERATOR)
    assert made.allowed, made.message
    for path, body in OURS.values():
        labelled = {**body, "metadata": {**body["metadata"], "labels": MINE}}
        made = empty_plane.call("POST", path, labelled, user=OPERATOR, groups=masters)
        assert made.allowed, made.message
    empty_plane.must("POST", f"{SYSTEM}/secrets", {"metadata": {"name": "sandyard-authority"}})
    empty_plane.must("POST", LEASE.rpartition("/")[0], {"metadata": {"name": "sandyard-operator"}})
    empty_plane.must("POST", PODS, pod("kept", plain_spec()))
    eventually(lambda: empty_plane.must("GET", f"{SYSTEM}/pods")["items"], lambda pods: len(pods) > 0)
    return empty_plane


def uninstall(plane: ControlPlane, helm: Helm, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the hook's program as the hook's service account, whose rights are taken from the chart."""
    rendered = list(yaml.safe_load_all(helm.rendered("minimal")))
    rights = [d for d in rendered if d and d["metadata"]["name"] == "sandyard-uninstall" and d["kind"] != "Job"]
    manifest = folder / "rights.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": rights}))
    plane.run("kubectl", "apply", "-f", str(manifest))
    path = f"{SYSTEM}/serviceaccounts/sandyard-uninstall/token"
    token = plane.must("POST", path, {"spec": {"expirationSeconds": 600}})["status"]["token"]
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    kubeconfig = folder / "uninstall.kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    kubeconfig.chmod(0o600)
    return subprocess.run(
        [sys.executable, "-m", "sandyard_operator.uninstall"],
        env={**os.environ, "KUBECONFIG": str(kubeconfig), "SANDYARD_NAMESPACE": NAMESPACE},
        text=True,
        capture_output=True,
        check=False,
    )


def test_nothing_of_the_operator_is_left_and_everything_of_users_is(
    lived_in: ControlPlane, helm: Helm, tmp_path: Path
) -> None:
    tasks = f"/apis/sandyard.dev/v1alpha1/namespaces/{TEAM}/sandboxtasks"
    task = {"apiVersion": "sandyard.dev/v1alpha1", "kind": "SandboxTask", "metadata": {"name": "mine"}}
    lived_in.must("POST", tasks, task | {"spec": {"code": "print(1)"}})

    done = uninstall(lived_in, helm, tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "sandyard: deleted 1 sandbox pods, 3 network policies and 1 agent keys\n"
    assert names(lived_in, PODS) == ["kept"]
    assert names(lived_in, f"{SYSTEM}/pods") == []
    for path, body in OURS.values():
        assert body["metadata"]["name"] not in names(lived_in, path)
    assert "sandyard-authority" not in names(lived_in, f"{SYSTEM}/secrets")
    assert lived_in.call("GET", LEASE).status == 404
    assert names(lived_in, tasks) == ["mine"]
    assert names(lived_in, "/apis/sandyard.dev/v1alpha1/sandboxclasses") == ["default"]

    again = uninstall(lived_in, helm, tmp_path)
    assert again.stdout == "sandyard: deleted 0 sandbox pods, 0 network policies and 0 agent keys\n"


def names(plane: ControlPlane, path: str) -> list[str]:
    """Name the objects of a collection."""
    listed: list[dict[str, Any]] = plane.must("GET", path)["items"]
    return [item["metadata"]["name"] for item in listed]


def test_a_pod_that_does_not_go_is_named_at_the_deadline(
    empty_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = pod("sandyard-stuck", restricted_spec(), LABEL)
    stuck["metadata"]["finalizers"] = ["example.com/stuck"]
    default = PODS.replace(TEAM, "default")
    made = empty_plane.call("POST", default, stuck, user=OPERATOR, groups=("system:masters",))
    assert made.allowed, made.message
    monkeypatch.setenv("KUBECONFIG", str(empty_plane.kubeconfig))
    with pytest.raises(LeftoverError, match=r"default/sandyard-stuck on node \(none\).*--force"):
        asyncio.run(remove_all(NAMESPACE, seconds=1))
    free = {"metadata": {"finalizers": None}}
    path = f"{default}/sandyard-stuck"
    assert empty_plane.call("PATCH", path, free, user=OPERATOR, groups=("system:masters",)).allowed
    assert asyncio.run(remove_all(NAMESPACE, seconds=20)).startswith("deleted 0 sandbox pods")
