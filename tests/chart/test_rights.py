"""Who may do what: golden lists, as ``kubectl auth can-i --list`` tells them."""

import re
from typing import Final

import pytest

from chart.control_plane import ControlPlane
from chart.people import TEAM, account
from chart.release import NAMESPACE, OPERATOR

NOBODY: Final = f"system:serviceaccount:{TEAM}:nobody"  # has what every authenticated user has
VERBS: Final = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "impersonate",
    "bind",
    "escalate",
    "approve",
    "*",
]

OPERATOR_ANYWHERE: Final = {
    "configmaps [] [get]",
    "events.events.k8s.io [] [create patch]",
    "namespaces [] [get]",
    "networkpolicies.networking.k8s.io [] [get list create patch]",
    "nodes [] [list]",
    "pods [] [get list watch create patch delete]",
    "sandboxclasses.sandyard.dev [] [get list watch]",
    "sandboxclasses.sandyard.dev/status [] [patch]",
    "sandboxtasks.sandyard.dev [] [get list watch delete]",
    "sandboxtasks.sandyard.dev/finalizers [] [update]",
    "sandboxtasks.sandyard.dev/status [] [patch]",
    "secrets [sandyard-agent-tls] [get create patch]",
    "servicecidrs.networking.k8s.io [] [list]",
}
OPERATOR_AT_HOME: Final = OPERATOR_ANYWHERE | {
    "leases.coordination.k8s.io [sandyard-operator] [get create patch]",
    "secrets [] [get]",
    "secrets [sandyard-authority] [create patch]",
}
VIEWER: Final = {
    "sandboxclasses.sandyard.dev [] [get list watch]",
    "sandboxes.sandyard.dev [] [get list watch]",
    "sandboxpools.sandyard.dev [] [get list watch]",
    "sandboxtasks.data.sandyard.dev/artifacts [] [get]",
    "sandboxtasks.data.sandyard.dev/log [] [get]",
    "sandboxtasks.sandyard.dev [] [get list watch]",
}
WRITES: Final = "create update patch delete"
EDITOR: Final = {
    "blobs.data.sandyard.dev [] [get create update delete]",
    "sandboxclasses.sandyard.dev [] [get list watch]",
    f"sandboxes.sandyard.dev [] [get list watch {WRITES}]",
    "sandboxes.data.sandyard.dev/exec [] [create]",
    "sandboxes.data.sandyard.dev/files [] [get create update delete]",
    "sandboxes.data.sandyard.dev/state [] [get create]",
    "sandboxes.data.sandyard.dev/variables [] [get create update delete]",
    f"sandboxpools.sandyard.dev [] [get list watch {WRITES}]",
    "sandboxpools.sandyard.dev/scale [] [get update patch]",
    "sandboxtasks.data.sandyard.dev/artifacts [] [get]",
    "sandboxtasks.data.sandyard.dev/log [] [get]",
    f"sandboxtasks.sandyard.dev [] [get list watch {WRITES}]",
}
ADMIN: Final = {
    row.replace(WRITES, f"{WRITES} deletecollection").replace(
        "state [] [get create]", "state [] [get create update delete]"
    )
    for row in EDITOR
}


def rights(plane: ControlPlane, user: str, namespace: str) -> set[str]:
    """Return what ``kubectl auth can-i --list`` says, each right as ``resource [names] [verbs]``."""
    listed = plane.run("kubectl", "auth", "can-i", "--list", f"--as={user}", "--namespace", namespace).stdout
    return rows(listed)


def rows(listed: str) -> set[str]:
    """Return the rights in kubectl's table."""
    return {row for line in listed.splitlines()[1:] if (row := _row(line))}


def _row(line: str) -> str:
    """Return one right; nothing for a row of URLs."""
    resource, _urls, names, verbs = (part.strip() for part in re.findall(r"^\S*|\[[^\]]*\]", line))
    return f"{resource} {names} {_ordered(verbs)}" if resource else ""


def _ordered(verbs: str) -> str:
    return f"[{' '.join(sorted(set(verbs.strip('[]').split()), key=VERBS.index))}]"


@pytest.mark.parametrize(
    ("namespace", "golden"),
    [(TEAM, OPERATOR_ANYWHERE), (NAMESPACE, OPERATOR_AT_HOME)],
    ids=["in a tenant's namespace", "in its own"],
)
def test_the_operator_has_these_rights_and_no_other(plane: ControlPlane, namespace: str, golden: set[str]) -> None:
    own = rights(plane, OPERATOR, namespace) - rights(plane, NOBODY, namespace)
    assert own == golden


@pytest.mark.parametrize(
    ("tenant", "golden"),
    [("viewer", VIEWER), ("editor", EDITOR), ("admin", ADMIN), ("sandyard-user", EDITOR)],
)
def test_a_tenant_has_these_rights_of_ours_and_no_other(plane: ControlPlane, tenant: str, golden: set[str]) -> None:
    assert {row for row in rights(plane, account(tenant), TEAM) if "sandyard.dev" in row} == golden


@pytest.mark.parametrize("tenant", ["viewer", "editor", "admin", "sandyard-user"])
def test_no_tenant_may_write_a_status_or_a_class(plane: ControlPlane, tenant: str) -> None:
    for asked in ("sandboxtasks --subresource=status", "sandboxes --subresource=status", "sandboxclasses"):
        for verb in ("update", "patch", "create"):
            done = plane.run(
                "kubectl", "auth", "can-i", verb, *asked.split(), f"--as={account(tenant)}", "-n", TEAM, check=False
            )
            assert done.stdout.strip() == "no", f"{verb} {asked}"


def test_the_operator_cannot_raise_its_rights_nor_enter_a_pod(plane: ControlPlane) -> None:
    for asked in (
        "create pods --subresource=exec",
        "create pods --subresource=ephemeralcontainers",
        "create serviceaccounts --subresource=token",
        "escalate clusterroles.rbac.authorization.k8s.io",
        "bind clusterroles.rbac.authorization.k8s.io",
        "impersonate users",
        "list secrets",
        "get secrets",
        "create secrets",
        "delete networkpolicies.networking.k8s.io",
    ):
        done = plane.run("kubectl", "auth", "can-i", *asked.split(), f"--as={OPERATOR}", "-n", TEAM, check=False)
        assert done.stdout.strip() == "no", asked
