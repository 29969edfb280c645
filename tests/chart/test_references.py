"""Who creates an object that points somewhere must be allowed there himself."""

from typing import Any, Final

import pytest

from chart.control_plane import ControlPlane
from chart.people import DATA, account, session, task
from chart.release import NAMESPACE

SHA = "0" * 64
CODE: Final = {"code": "print(1)"}


def map_ref(name: str) -> dict[str, Any]:
    return {"configMapKeyRef": {"name": name, "key": "k"}}


def files(count: int, *, distinct: int) -> dict[str, Any]:
    return {"files": [{"path": f"f{i}", **map_ref(f"map-{i % distinct}")} for i in range(count)]}


def env(*secrets: str) -> dict[str, Any]:
    refs = [{"secretKeyRef": {"name": name, "key": "k"}} for name in secrets]
    return {"env": [{"name": f"V{i}", "valueFrom": ref} for i, ref in enumerate(refs)]}


RESTORE = {"persistence": {"restoreFrom": {"sandboxName": "session"}}}
BLOB_FILE = {"files": [{"path": "f", "blobRef": {"sha256": SHA}}]}
PRIVATE = "private"

# kind of object, spec: what it points to
POINTING: Final[dict[str, tuple[Any, dict[str, Any]]]] = {
    "code in a ConfigMap": (task, {"codeFrom": map_ref(PRIVATE)}),
    "standard input in a ConfigMap": (task, CODE | {"stdinFrom": map_ref(PRIVATE)}),
    "a file in a ConfigMap": (task, CODE | {"files": [{"path": "f", **map_ref(PRIVATE)}]}),
    "a Secret": (task, CODE | env(PRIVATE)),
    "standard input in a blob": (task, CODE | {"stdinFrom": {"blobRef": {"sha256": SHA}}}),
    "a file in a blob": (task, CODE | BLOB_FILE),
    "a session": (task, CODE | {"sandboxRef": {"name": PRIVATE}}),
    "a session's file in a ConfigMap": (session, {"files": [{"path": "f", **map_ref(PRIVATE)}]}),
    "a session's file in a blob": (session, BLOB_FILE),
    "a session's Secret": (session, env(PRIVATE)),
    "the state of a session": (session, {"persistence": {"restoreFrom": {"sandboxName": PRIVATE}}}),
    "a saved state": (session, {"persistence": {"restoreFrom": {"stateName": PRIVATE}}}),
}


@pytest.mark.parametrize("what", POINTING)
def test_who_may_only_submit_can_point_to_nothing(plane: ControlPlane, what: str) -> None:
    create, spec = POINTING[what]
    answer = create(plane, "submitter", spec)
    assert (answer.status, account("submitter") in answer.message) == (403, True), answer.message
    assert "may not" in answer.message


@pytest.mark.parametrize("what", POINTING)
def test_without_the_policies_he_could_which_is_the_control(unguarded: ControlPlane, what: str) -> None:
    create, spec = POINTING[what]
    answer = create(unguarded, "submitter", spec)
    assert answer.allowed, answer.message


@pytest.mark.parametrize("what", POINTING)
def test_who_has_the_stock_role_edit_can_point_to_all_of_it(plane: ControlPlane, what: str) -> None:
    create, spec = POINTING[what]
    answer = create(plane, "editor", spec)
    assert answer.allowed, answer.message


@pytest.mark.parametrize("create", [task, session])
def test_an_object_that_points_nowhere_needs_no_further_right(plane: ControlPlane, create: Any) -> None:
    answer = create(plane, "submitter", CODE if create is task else {})
    assert answer.allowed, answer.message


ALLOWED: Final[dict[str, tuple[Any, str, dict[str, Any]]]] = {
    "code by the ConfigMap's name": (task, "reader-of-some", {"codeFrom": map_ref("code")}),
    "a Secret by its name": (task, "reader-of-some", CODE | env("token", "token")),
    "eight ConfigMaps by name in 64 files": (task, "reader-of-some", CODE | files(64, distinct=8)),
    "the most that is checked by name": (
        task,
        "reader-of-some",
        CODE | files(64, distinct=8) | env(*(f"token-{i % 8}" for i in range(64))),
    ),
    "64 different ConfigMaps by the right to all": (task, "editor", CODE | files(64, distinct=64)),
    "64 different Secrets by the right to all": (task, "editor", CODE | env(*(f"s{i}" for i in range(64)))),
    "a session that may be called": (task, "caller", CODE | {"sandboxRef": {"name": "session"}}),
    "a blob": (task, "blob-reader", CODE | BLOB_FILE),
    "a state by the session's name": (session, "restorer", RESTORE),
    "a state by its name": (session, "restorer", {"persistence": {"restoreFrom": {"stateName": "saved"}}}),
    "a session's ConfigMap by name": (session, "reader-of-some", files(2, distinct=1)),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_the_right_to_what_is_pointed_to_is_enough(plane: ControlPlane, case: str) -> None:
    create, who, spec = ALLOWED[case]
    answer = create(plane, who, spec)
    assert answer.allowed, answer.message


REFUSED: Final[dict[str, tuple[Any, str, dict[str, Any], str]]] = {
    "another ConfigMap": (task, "reader-of-some", {"codeFrom": map_ref("other")}, "ConfigMap other"),
    "one ConfigMap of several": (
        task,
        "reader-of-some",
        CODE | {"files": [{"path": f"f{n}", **map_ref(n)} for n in ("map-0", "map-1", "other")]},
        "ConfigMap other",
    ),
    "another Secret": (task, "reader-of-some", CODE | env("token", "other"), "Secret other"),
    "more names than are checked": (
        task,
        "reader-of-some",
        CODE | files(9, distinct=9),
        "only by name can point to 8",
    ),
    "another session": (task, "caller", CODE | {"sandboxRef": {"name": "other"}}, "Sandbox other"),
    "another state": (
        session,
        "restorer",
        {"persistence": {"restoreFrom": {"stateName": "other"}}},
        f"sandboxes.{DATA}/state",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_right_to_one_is_no_right_to_another(plane: ControlPlane, case: str) -> None:
    create, who, spec, words = REFUSED[case]
    answer = create(plane, who, spec)
    assert answer.status == 403
    assert words in answer.message


def sandbox_class(secret: str | None, *, url: str = "https://pypi.example/simple/") -> dict[str, Any]:
    index: dict[str, Any] = {"url": url}
    if secret:
        index["credentialsSecretRef"] = {"name": secret, "key": "netrc"}
    spec = {"image": f"registry.example/runtime@sha256:{SHA}", "index": index}
    return {
        "apiVersion": "sandyard.dev/v1alpha1",
        "kind": "SandboxClass",
        "metadata": {"name": "tried"},
        "spec": spec,
    }


CLASSES = "/apis/sandyard.dev/v1alpha1/sandboxclasses"


@pytest.fixture
def class_writer(plane: ControlPlane) -> str:
    """Give a user who may write classes and nothing else."""
    rules = [{"apiGroups": ["sandyard.dev"], "resources": ["sandboxclasses"], "verbs": ["*"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    plane.call("POST", f"{rbac}/clusterroles", {"metadata": {"name": "class-writer"}, "rules": rules})
    binding = {
        "metadata": {"name": "class-writer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "class-writer"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "carla"}],
    }
    plane.call("POST", f"{rbac}/clusterrolebindings", binding)
    return "carla"


def test_a_class_sends_a_secret_to_its_index_only_for_who_may_read_it(plane: ControlPlane, class_writer: str) -> None:
    path = f"{CLASSES}?dryRun=All"
    assert plane.call("POST", path, sandbox_class(None), user=class_writer).allowed
    refused = plane.call("POST", path, sandbox_class("index-credentials"), user=class_writer)
    assert (refused.status, f"in the namespace {NAMESPACE}" in refused.message) == (403, True)
    assert plane.call("POST", path, sandbox_class("index-credentials")).allowed


def test_a_class_with_credentials_can_be_changed_elsewhere_but_not_turned_to_another_index(
    plane: ControlPlane, class_writer: str
) -> None:
    plane.must("POST", CLASSES, sandbox_class("index-credentials"))
    path = f"{CLASSES}/tried?dryRun=All"
    elsewhere = plane.call("PATCH", path, {"spec": {"queue": {"maxRunning": 5}}}, user=class_writer)
    turned = plane.call("PATCH", path, {"spec": {"index": {"url": "https://evil.example/"}}}, user=class_writer)
    plane.must("DELETE", f"{CLASSES}/tried")
    assert elsewhere.allowed, elsewhere.message
    assert turned.status == 403
