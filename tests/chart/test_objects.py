"""The operator's NetworkPolicies and agent keys in a tenant's namespace are not the tenant's to write."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from chart.control_plane import Answer, ControlPlane
from chart.people import TEAM, account
from chart.release import NAMESPACE, OPERATOR
from harness.tenant import eventually

TENANTS: Final = ("editor", "admin", "owner")
DRY: Final = "?dryRun=All"
POLICIES: Final = f"/apis/networking.k8s.io/v1/namespaces/{TEAM}/networkpolicies"
SECRETS: Final = f"/api/v1/namespaces/{TEAM}/secrets"


def policy(name: str) -> dict[str, Any]:
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def secret(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"k": "v"}}


OURS: Final = {
    "the isolating policy": (POLICIES, policy("sandyard-isolate")),
    "an install policy": (POLICIES, policy("sandyard-install-default")),
    "a policy of our prefix": (POLICIES, policy("sandyard-anything")),
    "the agents' key": (SECRETS, secret("sandyard-agent-tls")),
}
WRITES: Final = ("create", "update", "delete")


@pytest.fixture(scope="module")
def stored(plane: ControlPlane, unguarded: ControlPlane) -> Iterator[None]:
    """Have each of our objects on both control planes."""
    for one in (plane, unguarded):
        for path, body in OURS.values():
            made = one.call("POST", path, body, user=OPERATOR, groups=("system:masters",))
            assert made.allowed, made.message
    yield
    for one in (plane, unguarded):
        for path, body in OURS.values():
            one.must("DELETE", f"{path}/{body['metadata']['name']}")


def write(plane: ControlPlane, how: str, what: str, user: str) -> Answer:
    path, body = OURS[what]
    name = body["metadata"]["name"]
    match how:
        case "create":
            namespace = path.replace(TEAM, "default") if user == OPERATOR else path
            return plane.call("POST", namespace + DRY, body, user=user)
        case "update":
            labels = {"metadata": {"labels": {"changed": "yes"}}}
            return plane.call("PATCH", f"{path}/{name}{DRY}", labels, user=user)
        case _:
            return plane.call("DELETE", f"{path}/{name}{DRY}", user=user)


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("what", OURS)
def test_a_tenant_cannot_write_what_is_ours(
    plane: ControlPlane, unguarded: ControlPlane, what: str, how: str, tenant: str
) -> None:
    control = write(unguarded, how, what, account(tenant))
    assert control.status != 403, control.message  # 409 for a create: the object is there
    answer = write(plane, how, what, account(tenant))
    assert answer.status == 403
    assert "belongs to the Sandyard operator" in answer.message


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("what", OURS)
def test_an_administrator_can(plane: ControlPlane, what: str, how: str) -> None:
    answer = write(plane, how, what, "")
    assert answer.allowed or answer.status == 409, answer.message


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize("path", [POLICIES, SECRETS])
def test_a_tenant_cannot_sweep_ours_away_with_his_own(plane: ControlPlane, path: str) -> None:
    answer = plane.call("DELETE", path + DRY, user=account("editor"))
    assert answer.status == 403
    assert "belongs to the Sandyard operator" in answer.message


@pytest.mark.parametrize(("path", "body"), [(POLICIES, policy("mine")), (SECRETS, secret("sandyard-mine"))])
def test_other_objects_are_the_tenants_own(plane: ControlPlane, path: str, body: dict[str, Any]) -> None:
    answer = plane.call("POST", path + DRY, body, user=account("editor"))
    assert answer.allowed, answer.message


def test_a_namespace_with_our_objects_can_be_deleted(plane: ControlPlane) -> None:
    plane.must("POST", "/api/v1/namespaces", {"metadata": {"name": "leaving"}})
    for path, body in OURS.values():
        made = plane.call("POST", path.replace(TEAM, "leaving"), body, user=OPERATOR, groups=("system:masters",))
        assert made.allowed, made.message
    plane.must("DELETE", "/api/v1/namespaces/leaving")
    eventually(lambda: plane.call("GET", "/api/v1/namespaces/leaving").status, lambda status: status == 404)


def test_the_charts_own_policy_is_no_object_of_a_tenants_namespace(plane: ControlPlane) -> None:
    path = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies/sandyard-operator"
    assert plane.must("GET", path)["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
