"""Only the operator makes and changes sandbox pods, nobody weakens them, no tenant enters them."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from chart.control_plane import Answer, ControlPlane
from chart.people import TEAM, account
from chart.release import NAMESPACE, OPERATOR
from chart.sandbox_pods import DRY, LABEL, PODS, plain_spec, pod, restricted_spec
from harness.tenant import eventually

TENANTS: Final = ("editor", "admin", "owner")
ONLY_THE_OPERATOR: Final = "only the Sandyard operator"
FORGED: Final[dict[str, dict[str, Any]]] = {
    "our label": pod("mine", plain_spec(), LABEL),
    "a label of ours that does not exist": pod("mine", plain_spec(), {"sandyard.dev/x": ""}),
    "our name": pod("sandyard-0", plain_spec()),
    "the name of the chart's pods, elsewhere": pod("sandyard-operator-0", plain_spec()),
    "a generated name": {"metadata": {"generateName": "sandyard-"}, "spec": plain_spec()},
    "a faithful copy": pod("sandyard-0", restricted_spec(), LABEL),
}


@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("what", FORGED)
def test_a_tenant_cannot_make_a_pod_that_looks_like_ours(plane: ControlPlane, tenant: str, what: str) -> None:
    answer = plane.call("POST", PODS + DRY, FORGED[what], user=account(tenant))
    assert answer.status == 403
    assert ONLY_THE_OPERATOR in answer.message


@pytest.mark.parametrize("what", FORGED)
def test_without_the_policies_he_can_which_is_the_control(unguarded: ControlPlane, what: str) -> None:
    answer = unguarded.call("POST", PODS + DRY, FORGED[what], user=account("editor"))
    assert answer.allowed, answer.message


def test_an_administrator_cannot_either(plane: ControlPlane) -> None:
    assert ONLY_THE_OPERATOR in plane.call("POST", PODS + DRY, FORGED["a faithful copy"]).message


@pytest.mark.parametrize("name", ["mine", "my-sandyard-pod", "sandyardx"])
def test_other_pods_are_the_tenants_own(plane: ControlPlane, name: str) -> None:
    body = pod(name, plain_spec(), {"app": "sandyard", "example.com/sandyard.dev": "x"})
    answer = plane.call("POST", PODS + DRY, body, user=account("editor"))
    assert answer.allowed, answer.message


def test_a_controller_makes_no_such_pod_for_a_tenant(plane: ControlPlane) -> None:
    labels = {"app": "forger"} | LABEL
    template = {"metadata": {"labels": labels}, "spec": plain_spec()}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "forger"}}, "template": template}
    sets = f"/apis/apps/v1/namespaces/{TEAM}/replicasets"
    plane.must("POST", sets, {"metadata": {"name": "forger"}, "spec": spec})
    status = eventually(
        lambda: plane.must("GET", f"{sets}/forger").get("status", {}), lambda found: "conditions" in found
    )
    plane.must("DELETE", f"{sets}/forger")
    assert ONLY_THE_OPERATOR in status["conditions"][0]["message"]


def test_the_operator_makes_them(plane: ControlPlane) -> None:
    answer = plane.call("POST", PODS + DRY, FORGED["a faithful copy"], user=OPERATOR)
    assert answer.allowed, answer.message


def test_the_charts_own_pods_are_made_by_the_ordinary_controllers(plane: ControlPlane) -> None:
    pods = eventually(
        lambda: plane.must("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"],
        lambda items: len(items) > 0,
    )
    assert pods[0]["metadata"]["name"].startswith("sandyard-operator-")


def on_container(field: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(spec: dict[str, Any]) -> None:
        spec["containers"][1]["securityContext"][field] = value

    return change


def on_spec(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda spec: spec.update(fields)


def without(field: str) -> Callable[[dict[str, Any]], None]:
    def change(spec: dict[str, Any]) -> None:
        del spec["containers"][1]["securityContext"][field]

    return change


WEAKENED: Final[dict[str, Callable[[dict[str, Any]], None]]] = {
    "the host's network": on_spec(hostNetwork=True),
    "the host's processes": on_spec(hostPID=True),
    "the host's IPC": on_spec(hostIPC=True),
    "one process namespace": on_spec(shareProcessNamespace=True),
    "a service account token": on_spec(automountServiceAccountToken=True),
    "a host path": on_spec(volumes=[{"name": "h", "hostPath": {"path": "/"}}]),
    "a token by projection": on_spec(
        volumes=[{"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]
    ),
    "a claim": on_spec(volumes=[{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]),
    "privilege": lambda spec: spec["containers"][1]["securityContext"].update(
        privileged=True, allowPrivilegeEscalation=True
    ),
    "escalation": on_container("allowPrivilegeEscalation", value=True),
    "escalation by silence": without("allowPrivilegeEscalation"),
    "a writable root": on_container("readOnlyRootFilesystem", value=False),
    "a writable root by silence": without("readOnlyRootFilesystem"),
    "a capability": on_container("capabilities", {"drop": ["ALL"], "add": ["NET_RAW"]}),
    "capabilities by silence": without("capabilities"),
    "root": on_container("runAsUser", 0),
    "root by silence": without("runAsUser"),
    "no word against root": without("runAsNonRoot"),
    "no seccomp": on_container("seccompProfile", {"type": "Unconfined"}),
    "no seccomp by silence": without("seccompProfile"),
    "all of /proc": lambda spec: (
        spec.update(hostUsers=False),
        on_container("procMount", "Unmasked")(spec),
    )[0],
    "no AppArmor": on_container("appArmorProfile", {"type": "Unconfined"}),
    "a sysctl": on_spec(securityContext={"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}]}),
    "a port of the host": lambda spec: spec["containers"][0].update(ports=[{"containerPort": 1, "hostPort": 1}]),
    "a sidecar that may more": lambda spec: spec["containers"].append({"name": "proxy", "image": "localhost/none:1"}),
    "an init container that may more": on_spec(initContainers=[{"name": "i", "image": "localhost/none:1"}]),
}


@pytest.mark.parametrize("what", WEAKENED)
def test_a_sandbox_pod_stays_restricted_even_from_the_operators_hand(
    plane: ControlPlane, unguarded: ControlPlane, what: str
) -> None:
    spec = restricted_spec()
    WEAKENED[what](spec)
    body = pod("sandyard-0", spec, LABEL)
    control = unguarded.call("POST", PODS + DRY, body, user=OPERATOR)
    assert control.allowed, control.message
    answer = plane.call("POST", PODS + DRY, body, user=OPERATOR)
    assert answer.status == 422
    assert "sandbox pod" in answer.message


def test_users_and_profiles_may_be_set_on_the_pod_as_well(plane: ControlPlane) -> None:
    spec = restricted_spec()
    for one in spec["containers"]:
        for field in ("runAsUser", "runAsNonRoot", "seccompProfile"):
            del one["securityContext"][field]
    spec["securityContext"] = {
        "runAsUser": 10002,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    answer = plane.call("POST", PODS + DRY, pod("sandyard-0", spec, LABEL), user=OPERATOR)
    assert answer.allowed, answer.message


@pytest.fixture(scope="module")
def stored(plane: ControlPlane, unguarded: ControlPlane) -> Iterator[str]:
    """Give a sandbox pod that exists on both control planes."""
    body = pod("sandyard-stored", restricted_spec(), LABEL)
    for one in (plane, unguarded):
        answer = one.call("POST", PODS, body, user=OPERATOR)
        assert answer.allowed, answer.message
    yield "sandyard-stored"
    for one in (plane, unguarded):
        one.must("DELETE", f"{PODS}/sandyard-stored")


CHANGES: Final[dict[str, dict[str, Any]]] = {
    "a label of ours": {"metadata": {"labels": {"sandyard.dev/network": "installing"}}},
    "losing our labels": {"metadata": {"labels": {"sandyard.dev/role": None}}},
    "a label of his": {"metadata": {"labels": {"mine": "yes"}}},
    "an annotation": {"metadata": {"annotations": {"sandyard.dev/signature": "forged"}}},
    "the image": {"spec": {"containers": [{"name": "agent", "image": "localhost/other:1"}]}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/mine"]}},
}


def change(plane: ControlPlane, name: str, patch: dict[str, Any], user: str) -> Answer:
    return plane.call("PATCH", f"{PODS}/{name}{DRY}", patch, user=user)


@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("what", CHANGES)
def test_a_tenant_cannot_change_a_sandbox_pod(
    plane: ControlPlane, unguarded: ControlPlane, stored: str, tenant: str, what: str
) -> None:
    control = change(unguarded, stored, CHANGES[what], account(tenant))
    assert control.allowed, control.message
    answer = change(plane, stored, CHANGES[what], account(tenant))
    assert answer.status == 403
    assert ONLY_THE_OPERATOR in answer.message


@pytest.mark.parametrize("what", CHANGES)
def test_the_operator_can(plane: ControlPlane, stored: str, what: str) -> None:
    answer = change(plane, stored, CHANGES[what], OPERATOR)
    assert answer.allowed, answer.message


def test_a_tenant_cannot_turn_his_own_pod_into_one_of_ours(plane: ControlPlane) -> None:
    plane.must("POST", PODS, pod("turning", plain_spec()))
    answer = change(plane, "turning", {"metadata": {"labels": LABEL}}, account("editor"))
    allowed = change(plane, "turning", {"metadata": {"labels": {"mine": "yes"}}}, account("editor"))
    plane.must("DELETE", f"{PODS}/turning")
    assert ONLY_THE_OPERATOR in answer.message
    assert allowed.allowed, allowed.message


def test_a_controller_changes_owners_and_finalizers_and_nothing_else(plane: ControlPlane, stored: str) -> None:
    collector = "system:serviceaccount:kube-system:generic-garbage-collector"
    groups = ("system:masters",)  # rights of its own; what is asked here is the policy
    for what, patch in CHANGES.items():
        path = f"{PODS}/{stored}{DRY}"
        answer = plane.call("PATCH", path, patch, user=collector, groups=groups)
        assert answer.allowed == (what == "a finalizer"), (what, answer.message)


def test_orphaning_a_tasks_pod_works(plane: ControlPlane) -> None:
    tasks = f"/apis/sandyard.dev/v1alpha1/namespaces/{TEAM}/sandboxtasks"
    made = plane.must("POST", tasks, sandbox_task("orphaning"))
    body = pod("sandyard-orphan", restricted_spec(), LABEL)
    body["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "sandyard.dev/v1alpha1",
            "kind": "SandboxTask",
            "name": "orphaning",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
    ]
    created = plane.call("POST", PODS, body, user=OPERATOR)
    assert created.allowed, created.message
    plane.must("DELETE", f"{tasks}/orphaning", {"propagationPolicy": "Orphan"})
    eventually(lambda: plane.call("GET", f"{tasks}/orphaning").status, lambda status: status == 404)
    left = plane.must("DELETE", f"{PODS}/sandyard-orphan")
    assert "ownerReferences" not in left["metadata"]


def sandbox_task(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "sandyard.dev/v1alpha1",
        "kind": "SandboxTask",
        "metadata": {"name": name},
        "spec": {"code": "print(1)"},
    }


@pytest.mark.parametrize("tenant", TENANTS)
def test_a_tenant_may_delete_and_evict_a_sandbox_pod(plane: ControlPlane, stored: str, tenant: str) -> None:
    user = account(tenant)
    assert plane.call("DELETE", f"{PODS}/{stored}{DRY}", user=user).allowed
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": stored}}
    answer = plane.call("POST", f"{PODS}/{stored}/eviction{DRY}", eviction, user=user)
    assert answer.allowed, answer.message


def test_a_node_may_write_a_sandbox_pods_status(plane: ControlPlane, stored: str) -> None:
    status = {"status": {"phase": "Running"}}
    path = f"{PODS}/{stored}/status{DRY}"
    answer = plane.call("PATCH", path, status, user="system:node:n", groups=("system:nodes", "system:masters"))
    assert answer.allowed, answer.message


ENTRIES: Final = {
    "exec": ("POST", "exec?command=id&container=runner&stdout=true"),
    "attach": ("POST", "attach?container=runner&stdout=true"),
    "portforward": ("POST", "portforward?ports=9443"),
    "proxy": ("GET", "proxy/"),
}


@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_tenant_cannot_enter_a_sandbox_pod(
    plane: ControlPlane, unguarded: ControlPlane, stored: str, tenant: str, entry: str
) -> None:
    method, path = ENTRIES[entry]
    control = unguarded.call(method, f"{PODS}/{stored}/{path}", user=account(tenant))
    assert control.status != 403  # no node to go on to, but nobody refused
    answer = plane.call(method, f"{PODS}/{stored}/{path}", user=account(tenant))
    assert answer.status == 403
    assert f"may not use pods/{entry} of a sandbox pod" in answer.message


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_administrator_can_enter_and_a_tenant_his_own_pods(plane: ControlPlane, stored: str, entry: str) -> None:
    method, path = ENTRIES[entry]
    assert plane.call(method, f"{PODS}/{stored}/{path}").status != 403
    plane.must("POST", PODS, pod("own", plain_spec()))
    answer = plane.call(method, f"{PODS}/own/{path.replace('runner', 'c')}", user=account("editor"))
    plane.must("DELETE", f"{PODS}/own")
    assert answer.status != 403, answer.message


BY_SUBRESOURCE: Final[dict[str, dict[str, Any]]] = {
    "ephemeralcontainers": {"spec": {"ephemeralContainers": [{"name": "debug", "image": "localhost/none:1"}]}},
    "resize": {
        "spec": {"containers": [{"name": "runner", "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}}]}
    },
}


@pytest.mark.parametrize("subresource", BY_SUBRESOURCE)
def test_who_owns_the_namespace_cannot_add_to_a_sandbox_pod(
    plane: ControlPlane, unguarded: ControlPlane, stored: str, subresource: str
) -> None:
    path, patch = f"{PODS}/{stored}/{subresource}{DRY}", BY_SUBRESOURCE[subresource]
    user = account("owner")
    control = unguarded.call("PATCH", path, patch, user=user)
    assert control.status != 403, control.message
    answer = plane.call("PATCH", path, patch, user=user)
    assert answer.status == 403
    assert f"may not use pods/{subresource}" in answer.message
