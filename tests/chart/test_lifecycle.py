"""Install, upgrade, uninstall and install again lose no object of a user, and an upgrade changes the CRDs."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from chart.control_plane import ControlPlane
from chart.release import CHART, NAMESPACE, RELEASE, VALUES, helm, install
from harness.tenant import eventually

GROUP: Final = "/apis/sandyard.dev/v1alpha1"
CLASS: Final = f"{GROUP}/sandboxclasses/default"
CRD: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sandboxtasks.sandyard.dev"
MINIMAL: Final = ("--values", str(VALUES / "minimal.yaml"))
OTHER_IMAGE: Final = f"registry.example/runtime@sha256:{'2' * 64}"


@pytest.fixture
def installed(empty_plane: ControlPlane) -> ControlPlane:
    """Give a release with one task and one class of users."""
    install(empty_plane, "minimal")
    task = {"apiVersion": "sandyard.dev/v1alpha1", "kind": "SandboxTask", "metadata": {"name": "mine"}}
    empty_plane.must("POST", f"{GROUP}/namespaces/default/sandboxtasks", task | {"spec": {"code": "print(1)"}})
    own = {"apiVersion": "sandyard.dev/v1alpha1", "kind": "SandboxClass", "metadata": {"name": "own"}}
    empty_plane.must("POST", f"{GROUP}/sandboxclasses", own | {"spec": {"image": OTHER_IMAGE}})
    return empty_plane


def spec(plane: ControlPlane) -> dict[str, Any]:
    found: dict[str, Any] = plane.must("GET", CLASS)["spec"]
    return found


def assert_users_objects_are_there(plane: ControlPlane) -> None:
    plane.must("GET", f"{GROUP}/namespaces/default/sandboxtasks/mine")
    plane.must("GET", f"{GROUP}/sandboxclasses/own")


def test_an_upgrade_changes_the_default_class_as_the_values_say(installed: ControlPlane) -> None:
    before = installed.must("GET", CLASS)["metadata"]["uid"]
    helm(installed, "upgrade", *MINIMAL, "--set", f"defaultClass.image={OTHER_IMAGE}")
    upgraded = installed.must("GET", CLASS)
    assert (upgraded["metadata"]["uid"], upgraded["spec"]["image"]) == (before, OTHER_IMAGE)
    assert_users_objects_are_there(installed)


def test_an_upgrade_takes_over_the_class_that_the_hook_of_a_first_install_made(installed: ControlPlane) -> None:
    helm(installed, "uninstall", "--no-hooks")
    installed.must("DELETE", CLASS)
    rendered = yaml.safe_load_all(  # without a cluster: the kind is not known
        installed.run("helm", "template", RELEASE, str(CHART), "--namespace", NAMESPACE, *MINIMAL).stdout
    )
    made = next(document for document in rendered if document and document["kind"] == "SandboxClass")
    assert made["metadata"]["annotations"]["helm.sh/hook"] == "post-install"
    helm(installed, "install", *MINIMAL, "--set", "defaultClass.create=false")
    first = installed.must("POST", f"{GROUP}/sandboxclasses", made)
    helm(installed, "upgrade", *MINIMAL, "--set", f"defaultClass.image={OTHER_IMAGE}", "--force-conflicts")
    upgraded = installed.must("GET", CLASS)
    assert (upgraded["metadata"]["uid"], upgraded["spec"]["image"]) == (first["metadata"]["uid"], OTHER_IMAGE)


def test_an_upgrade_changes_the_crds(installed: ControlPlane) -> None:
    crd = installed.must("GET", CRD)
    current = crd["spec"]["names"]["shortNames"]
    installed.must("PATCH", CRD, {"spec": {"names": {"shortNames": ["old"]}}})
    helm(installed, "upgrade", *MINIMAL, "--force-conflicts")
    assert installed.must("GET", CRD)["spec"]["names"]["shortNames"] == current
    assert_users_objects_are_there(installed)


def test_an_uninstall_keeps_crds_classes_and_tasks_and_takes_the_rest(installed: ControlPlane) -> None:
    helm(installed, "uninstall", "--no-hooks")  # no node runs the hook's Job here
    assert_users_objects_are_there(installed)
    assert "runtime" in spec(installed)["image"]
    for path in (
        f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/sandyard-operator",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/sandyard-operator",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/sandyard-user",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/sandyard-pods",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/sandyard-pods",
    ):
        assert installed.call("GET", path).status == 404, path


def test_a_namespace_with_tasks_can_be_deleted_after_an_uninstall(installed: ControlPlane) -> None:
    installed.must("POST", "/api/v1/namespaces", {"metadata": {"name": "leaving"}})
    task = {"apiVersion": "sandyard.dev/v1alpha1", "kind": "SandboxTask", "metadata": {"name": "left"}}
    installed.must("POST", f"{GROUP}/namespaces/leaving/sandboxtasks", task | {"spec": {"code": "print(1)"}})
    helm(installed, "uninstall", "--no-hooks")
    installed.must("DELETE", "/api/v1/namespaces/leaving")
    eventually(lambda: installed.call("GET", "/api/v1/namespaces/leaving").status, lambda status: status == 404)


def test_installing_again_finds_what_was_kept(installed: ControlPlane) -> None:
    before = installed.must("GET", CLASS)["metadata"]["uid"]
    helm(installed, "uninstall", "--no-hooks")
    helm(installed, "install", *MINIMAL)
    assert installed.must("GET", CLASS)["metadata"]["uid"] == before
    assert_users_objects_are_there(installed)


def test_a_default_class_that_an_administrator_changed_is_never_overwritten_unasked(
    installed: ControlPlane, tmp_path: Path
) -> None:
    change = tmp_path / "change.json"
    change.write_text(json.dumps({"spec": {"image": OTHER_IMAGE, "queue": {"maxRunning": 9}}}))
    installed.run("kubectl", "patch", "sbc", "default", "--type=merge", f"--patch-file={change}")

    refused = helm(installed, "upgrade", *MINIMAL, check=False)
    assert refused.returncode != 0
    assert ".spec.image" in refused.stderr
    assert spec(installed)["image"] == OTHER_IMAGE

    helm(installed, "upgrade", *MINIMAL, "--set", "defaultClass.create=false")
    assert (spec(installed)["image"], spec(installed)["queue"]["maxRunning"]) == (OTHER_IMAGE, 9)
    helm(installed, "upgrade", *MINIMAL, "--force-conflicts")
    assert spec(installed)["image"] != OTHER_IMAGE
    assert spec(installed)["queue"]["maxRunning"] == 9
