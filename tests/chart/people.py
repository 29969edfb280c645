"""Tenants with different rights in one namespace, made the same way on each control plane."""

from functools import partial
from typing import Any, Final

from chart.control_plane import Answer, ControlPlane
from harness.tenant import eventually

TEAM: Final = "team-a"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
GROUP: Final = "sandyard.dev"
DATA: Final = "data.sandyard.dev"

Rule = dict[str, list[str]]


def rule(group: str, resources: str, verbs: str, names: tuple[str, ...] = ()) -> Rule:
    """Return one rule of a Role."""
    given = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    return given | ({"resourceNames": list(names)} if names else {})


SUBMIT: Final = rule(GROUP, "sandboxtasks sandboxes", "create")
OWN_RULES: Final[dict[str, list[Rule]]] = {
    "submitter": [SUBMIT],
    "reader-of-some": [
        SUBMIT,
        rule("", "configmaps", "get", ("code", *(f"map-{i}" for i in range(9)))),
        rule("", "secrets", "get", ("token", *(f"token-{i}" for i in range(8)))),
    ],
    "caller": [SUBMIT, rule(DATA, "sandboxes/exec", "create", ("session",))],
    "restorer": [SUBMIT, rule(DATA, "sandboxes/state", "get", ("session", "saved"))],
    "blob-reader": [SUBMIT, rule(DATA, "blobs", "get")],
}
STOCK_ROLES: Final = {
    "viewer": "view",
    "editor": "edit",
    "admin": "admin",
    "owner": "cluster-admin",  # of this one namespace
    "sandyard-user": "sandyard-user",
}


def account(name: str) -> str:
    """Return a tenant's user name."""
    return f"system:serviceaccount:{TEAM}:{name}"


def settle(plane: ControlPlane) -> None:
    """Make the namespace, the tenants and their rights."""
    plane.must("POST", "/api/v1/namespaces", {"metadata": {"name": TEAM}})
    for name, rules in OWN_RULES.items():
        plane.must("POST", f"{RBAC}/namespaces/{TEAM}/roles", {"metadata": {"name": name}, "rules": rules})
        _bind(plane, name, {"kind": "Role", "name": name})
    for name, role in STOCK_ROLES.items():
        _bind(plane, name, {"kind": "ClusterRole", "name": role})
    for name in (*OWN_RULES, "editor"):  # RBAC sees a new binding a moment later
        eventually(partial(task, plane, name, {"code": "print(1)"}), lambda answer: answer.allowed)


def until_policies_are_in_force(plane: ControlPlane) -> None:
    """Wait until the API server has loaded the policies: it does so a moment after they are created."""
    forged = {"metadata": {"name": "sandyard-0"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    pods = f"/api/v1/namespaces/{TEAM}/pods?dryRun=All"
    pointing = {"codeFrom": {"configMapKeyRef": {"name": "private", "key": "k"}}}
    eventually(partial(plane.call, "POST", pods, forged), lambda answer: not answer.allowed)
    eventually(partial(task, plane, "submitter", pointing), lambda answer: not answer.allowed)


def _bind(plane: ControlPlane, name: str, role: dict[str, str]) -> None:
    body = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", **role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": TEAM}],
    }
    plane.must("POST", f"{RBAC}/namespaces/{TEAM}/rolebindings", body)


def task(plane: ControlPlane, who: str, spec: dict[str, Any]) -> Answer:
    """Try to create a SandboxTask as a tenant; nothing is stored."""
    return _create(plane, who, "SandboxTask", "sandboxtasks", spec)


def session(plane: ControlPlane, who: str, spec: dict[str, Any]) -> Answer:
    """Try to create a Sandbox as a tenant; nothing is stored."""
    return _create(plane, who, "Sandbox", "sandboxes", spec)


def _create(plane: ControlPlane, who: str, kind: str, plural: str, spec: dict[str, Any]) -> Answer:
    body = {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": {"name": "tried"}, "spec": spec}
    path = f"/apis/{GROUP}/v1alpha1/namespaces/{TEAM}/{plural}?dryRun=All&fieldValidation=Strict"
    return plane.call("POST", path, body, user=account(who))
