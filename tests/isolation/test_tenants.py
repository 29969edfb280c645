"""A tenant with the stock ``edit`` role cannot pose as the operator, nor reach into a sandbox pod."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.tenant import Tenant, eventually, new_tenant


@pytest.fixture(scope="module")
def editor() -> Iterator[Tenant]:
    """Give a tenant whose service account ``dev`` holds the stock role ``edit``."""
    with new_tenant("editor") as tenant:
        tenant.kubectl("create", "serviceaccount", "dev")
        tenant.kubectl("create", "rolebinding", "dev", "--clusterrole=edit", f"--serviceaccount={tenant.namespace}:dev")
        yield tenant


def as_editor(tenant: Tenant, *args: str, stdin: str | None = None) -> Any:
    """Run kubectl as the tenant's service account."""
    who = f"--as=system:serviceaccount:{tenant.namespace}:dev"
    return tenant.kubectl(who, *args, stdin=stdin, check=False)


def forged_pod(name: str, labels: dict[str, str]) -> str:
    """Return a pod that looks as if the operator had made it."""
    container = {"name": "runner", "image": "localhost/none:1"}
    metadata = {"name": name, "labels": labels}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}})


def test_a_plain_pod_may_be_created_which_is_the_control(editor: Tenant) -> None:
    done = as_editor(editor, "create", "-f", "-", stdin=forged_pod("plain", {"app": "mine"}))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "labels"),
    [("mine", {"sandyard.dev/role": "task"}), ("sandyard-0123456789", {})],
    ids=["label", "name"],
)
def test_a_pod_with_our_labels_or_name_is_refused(editor: Tenant, name: str, labels: dict[str, str]) -> None:
    done = as_editor(editor, "create", "-f", "-", stdin=forged_pod(name, labels))
    assert done.returncode != 0
    assert "sandyard" in done.stderr


def test_a_tenant_cannot_enter_or_change_a_sandbox_pod(editor: Tenant) -> None:
    name = editor.task("import time; time.sleep(120)")
    eventually(lambda: editor.get(name).get("status", {}).get("phase"), lambda phase: phase == "Running", seconds=60)
    pod = editor.get(name)["status"]["run"]["podName"]
    entered = as_editor(editor, "exec", pod, "-c", "runner", "--", "/usr/bin/python3.13", "-c", "print('inside')")
    assert "inside" not in entered.stdout
    assert entered.returncode != 0
    labelled = as_editor(editor, "label", "pod", pod, "sandyard.dev/network=installing", "--overwrite")
    assert labelled.returncode != 0
    editor.kubectl("delete", "sbt", name, "--wait=false")


def test_a_status_is_not_a_tenants_to_write(editor: Tenant) -> None:
    name = editor.task("print(1)", cancel=True)
    patch = [
        "patch",
        "sbt",
        name,
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"phase":"Succeeded"}}',
    ]
    done = as_editor(editor, *patch)
    assert "forbidden" in done.stderr.lower()


def test_a_secret_can_be_named_only_by_who_may_read_it(editor: Tenant) -> None:
    editor.kubectl("create", "serviceaccount", "viewer")
    editor.kubectl(
        "create",
        "rolebinding",
        "viewer",
        "--clusterrole=sandyard-user",
        f"--serviceaccount={editor.namespace}:viewer",
    )
    manifest = {
        "apiVersion": "sandyard.dev/v1alpha1",
        "kind": "SandboxTask",
        "metadata": {"name": "reads"},
        "spec": {"codeFrom": {"configMapKeyRef": {"name": "private", "key": "main.py"}}},
    }
    who = f"--as=system:serviceaccount:{editor.namespace}:viewer"
    done = editor.kubectl("create", "-f", "-", who, stdin=json.dumps(manifest), check=False)
    assert done.returncode != 0
    assert "private" in done.stderr or "configmap" in done.stderr.lower()
