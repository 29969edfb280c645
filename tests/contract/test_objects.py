"""What the API server takes, completes and refuses, each refusal naming the field."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from harness.control_plane import ControlPlane
from harness.objects import DIGEST, FULLEST, KEY_REF, SMALLEST, WRONG, Wrong, collection, manifest
from harness.store import Store
from sandyard_api.crdgen import KINDS

EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "tasks"
MODELS: Final = {kind.name: kind.model for kind in KINDS}

DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "SandboxTask": {
        "code": "print(1)",
        "sandboxClassName": "default",
        "queueTimeoutSeconds": 0,
        "startTimeoutSeconds": 300,
        "retryPolicy": "Never",
        "cancel": False,
    },
    "Sandbox": {
        "sandboxClassName": "default",
        "operatingMode": "Running",
        "idleTimeoutSeconds": 600,
        "maxLifetimeSeconds": 28800,
        "persistence": {"enabled": False, "retain": "Delete"},
    },
    "SandboxPool": {"sandboxClassName": "default", "replicas": 1, "maxUnavailable": "25%"},
    "SandboxClass": {
        "image": DIGEST,
        "imagePolicy": "RequireDigest",
        "imagePullPolicy": "IfNotPresent",
        "dependencies": {"maxItems": 20, "requireHashes": False},
        "limits": {
            "codeBytes": 262144,
            "stdinBytes": 10485760,
            "stdoutBytes": 1048576,
            "stderrBytes": 262144,
            "metadataBytes": 8192,
            "artifactBytes": 104857600,
            "stateBytes": "5Gi",
            "openFiles": 4096,
            "processes": 256,
        },
        "resources": {
            "default": {
                "requests": {"cpu": "100m", "memory": "128Mi"},
                "limits": {"cpu": "1", "memory": "500Mi", "ephemeral-storage": "1Gi"},
            }
        },
        "timeouts": {
            "installSeconds": 180,
            "maxInstallSeconds": 900,
            "runSeconds": 60,
            "maxRunSeconds": 3600,
            "defaultTTLSecondsAfterFinished": 86400,
        },
        "queue": {"maxRunning": 4, "maxQueued": 10},
        "allowSecretEnv": False,
        "userNamespaces": "Preferred",
        "isolation": {"require": ["seccomp", "networkPolicy"]},
    },
}
FULL: Final = [(kind, spec) for kind, specs in FULLEST.items() for spec in specs]


def test_the_smallest_object_gets_its_defaults(store: Store, kind: str) -> None:
    assert store.create(kind, SMALLEST[kind]).created["spec"] == DEFAULTS[kind]


def test_the_models_have_the_same_defaults(store: Store, kind: str) -> None:
    completed = MODELS[kind].model_validate(store.create(kind, SMALLEST[kind]).created)
    bare = completed.model_validate(
        {"metadata": {"name": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}} | {"spec": SMALLEST[kind]}
    )
    assert completed.model_dump()["spec"] == bare.model_dump()["spec"]


def test_part_of_a_class_s_default_resources_leaves_the_rest(store: Store) -> None:
    spec = {"image": DIGEST, "resources": {"default": {"limits": {"memory": "1Gi"}}}}
    default = store.create("SandboxClass", spec).created["spec"]["resources"]["default"]
    assert default["limits"] == {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    assert default["requests"] == {"cpu": "100m", "memory": "128Mi"}


@pytest.mark.parametrize(("of_kind", "spec"), FULL, ids=[kind for kind, _ in FULL])
def test_the_fullest_object_is_taken_whole_and_the_model_reads_it(
    store: Store, of_kind: str, spec: dict[str, Any]
) -> None:
    created = store.create(of_kind, spec).created
    assert created["spec"] | spec == created["spec"] | within(created["spec"], spec)
    MODELS[of_kind].model_validate(created)


def within(stored: Any, written: Any) -> Any:
    """Return what of the stored value was written."""
    if isinstance(written, dict):
        return {key: within(stored[key], value) for key, value in written.items()}
    if isinstance(written, list):
        return [within(*pair) for pair in zip(stored, written, strict=True)]
    return stored


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_wrong_object_is_refused_with_its_field_named(plane: ControlPlane, wrong: Wrong) -> None:
    answer = plane.request("POST", collection(wrong.kind), manifest(wrong.kind, wrong.spec))
    assert answer.status_code == 422, answer.text
    assert wrong.field in answer.json()["message"]
    assert wrong.word in answer.json()["message"]


@pytest.mark.parametrize("place", ["spec", "spec.resources", "spec.resources.limits", "spec.network"])
def test_an_unknown_field_is_refused(plane: ControlPlane, place: str) -> None:
    body = manifest("SandboxTask", {"code": "1"})
    inner = body
    for part in place.split("."):
        inner = inner.setdefault(part, {})
    inner["surprise"] = 1
    answer = plane.request("POST", collection("SandboxTask"), body)
    assert answer.status_code == 400
    assert f'unknown field "{place}.surprise"' in answer.json()["message"]


def test_a_class_s_name_must_fit_a_label(plane: ControlPlane) -> None:
    body = manifest("SandboxClass", {"image": DIGEST}, name="a" * 64)
    answer = plane.request("POST", collection("SandboxClass"), body)
    assert answer.status_code == 422
    assert "at most 63 characters" in answer.json()["message"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_taken(plane: ControlPlane, path: Path) -> None:
    done = plane.kubectl("create", "--dry-run=server", "--validate=strict", "-f", str(path))
    assert done.returncode == 0, done.stderr


LARGEST: Final = {
    "ASCII": "#" * 262143 + "\n",
    "line feeds, which double in JSON": "\n" * 262144,
    "four-byte characters": "\U0001f600" * 65536,
}


@pytest.mark.parametrize("code", LARGEST.values(), ids=LARGEST.keys())
@pytest.mark.parametrize("how", [("create",), ("apply", "--server-side")], ids=lambda how: how[0])
def test_the_largest_script_is_taken_and_one_byte_more_is_not(
    plane: ControlPlane, store: Store, tmp_path: Path, code: str, how: tuple[str, ...]
) -> None:
    store.create("SandboxTask", {"code": "1"}, name="unrelated")
    path = tmp_path / "task.yaml"

    def submit(text: str) -> tuple[int, str]:
        path.write_text(yaml.safe_dump(manifest("SandboxTask", {"code": text}, name="large")))
        done = plane.kubectl(*how, "-f", str(path))
        return done.returncode, done.stderr

    returncode, errors = submit("#" + code)
    assert returncode == 1
    assert "spec.code" in errors
    assert "262144" in errors
    assert submit(code) == (0, "")
    stored = plane.request("GET", f"{collection('SandboxTask')}/large").json()
    plane.request("DELETE", f"{collection('SandboxTask')}/large")
    assert stored["spec"]["code"] == code


def test_rules_have_room_for_the_largest_object(store: Store) -> None:
    task = store.create(
        "SandboxTask",
        {
            "code": "é" * 131072,
            "stdin": "x" * 131072,
            "args": ["x" * 4096] * 64,
            "env": [{"name": f"A{n:03}", "value": "x" * 500} for n in range(64)],
            "files": [{"path": f"{n:02}/{'x' * 252}", "configMapKeyRef": KEY_REF} for n in range(64)],
            "network": {
                "egress": [
                    {
                        "cidr": "2001:db8::/32",
                        "except": [f"2001:db8:{n:x}::/48" for n in range(32)],
                        "ports": [{"port": 1, "endPort": 65535}] * 32,
                    }
                ]
                * 32
            },
        },
    )
    assert task.patch({"spec": {"cancel": True}}) == (200, "")


def test_two_appliers_each_keep_their_variables(plane: ControlPlane, store: Store) -> None:
    store.create("Sandbox", {}, name="unrelated")
    path = f"{collection('Sandbox')}/shared"

    def apply(manager: str, spec: dict[str, Any]) -> None:
        answer = plane.apply(path, manifest("Sandbox", spec, name="shared"), manager=manager)
        assert answer.is_success, answer.text

    apply("people", {"idleTimeoutSeconds": 60})
    apply("operator", {"operatingMode": "Suspended"})
    apply("people", {"idleTimeoutSeconds": 90})
    spec = plane.request("GET", path).json()["spec"]
    plane.request("DELETE", path)
    assert (spec["operatingMode"], spec["idleTimeoutSeconds"]) == ("Suspended", 90)


def test_two_appliers_of_conditions_merge_by_type(plane: ControlPlane, store: Store) -> None:
    task = store.create("SandboxTask", {"code": "1"})

    def apply(manager: str, kind: str) -> None:
        condition = {
            "type": kind,
            "status": "True",
            "reason": "Tested",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        body = manifest("SandboxTask", {}) | {"status": {"conditions": [condition]}}
        del body["spec"]
        answer = plane.apply(f"{task.path}/status", body, manager=manager)
        assert answer.is_success, answer.text

    apply("a", "Accepted")
    apply("b", "Scheduled")
    assert [c["type"] for c in task.read()["status"]["conditions"]] == ["Accepted", "Scheduled"]
