"""The API server takes each CRD as generated, and serves what it promises: columns, selectors, scale."""

import json
from typing import Any

import pytest
import yaml

from harness.control_plane import ControlPlane
from harness.objects import SMALLEST, collection
from harness.store import DEFINITIONS, Store

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
COLUMNS = {
    "SandboxTask": ["Name", "Phase", "Reason", "Exit", "Warm", "Class", "Run", "Age"],
    "Sandbox": ["Name", "Phase", "Reason", "Warm", "Idle", "Age"],
    "SandboxPool": ["Name", "Class", "Wanted", "Ready", "Age"],
    "SandboxClass": ["Name", "Python", "Image", "Age"],
}
WIDE = {"SandboxTask": ["Warm", "Class"], "SandboxClass": ["Image"]}


def test_a_definition_is_structural_and_established(definitions: dict[str, dict[str, Any]], kind: str) -> None:
    conditions = {c["type"]: c["status"] for c in definitions[kind]["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


def test_nothing_of_a_definition_is_dropped_by_the_server(
    definitions: dict[str, dict[str, Any]], kind: str, request: pytest.FixtureRequest
) -> None:
    stored = definitions[kind]
    path = request.config.rootpath / "crds" / f"sandyard.dev_{stored['spec']['names']['plural']}.yaml"
    written = yaml.safe_load(path.read_text())
    assert stored["spec"]["versions"] == written["spec"]["versions"]
    assert stored["spec"]["names"] == written["spec"]["names"]
    assert stored["spec"]["scope"] == written["spec"]["scope"]


def test_columns(plane: ControlPlane, kind: str) -> None:
    table = plane.client.get(collection(kind), headers={"Accept": TABLE}).json()
    assert [column["name"] for column in table["columnDefinitions"]] == COLUMNS[kind]
    wide = [column["name"] for column in table["columnDefinitions"] if column["priority"] > 0]
    assert wide == WIDE.get(kind, [])
    assert all(column["description"] for column in table["columnDefinitions"])


def test_a_task_shows_its_state_in_the_columns(plane: ControlPlane, store: Store) -> None:
    task = store.create("SandboxTask", {"code": "1"})
    status = {
        "phase": "Failed",
        "reason": "NonZeroExit",
        "warm": True,
        "result": {"exitCode": 3},
        "timings": {"runMilliseconds": 1234},
    }
    assert task.patch({"status": status}, status=True)[0] == 200
    shown = plane.kubectl("get", "sbt", "one", "-o", "wide", "--no-headers").stdout.split()
    assert shown[:7] == ["one", "Failed", "NonZeroExit", "3", "true", "default", "1234"]


@pytest.mark.parametrize("of_kind", ["SandboxTask", "Sandbox"])
def test_fields_select(plane: ControlPlane, store: Store, of_kind: str) -> None:
    store.create(of_kind, SMALLEST[of_kind], name="idle")
    store.create(of_kind, SMALLEST[of_kind] | {"sandboxClassName": "big"}, name="busy").patch(
        {"status": {"phase": "Failed"}}, status=True
    )
    for selector in (".status.phase=Failed", ".spec.sandboxClassName=big"):
        found = plane.request("GET", collection(of_kind), fieldSelector=selector.removeprefix(".")).json()
        assert [item["metadata"]["name"] for item in found["items"]] == ["busy"]


def test_a_pool_scales(plane: ControlPlane, store: Store) -> None:
    pool = store.create("SandboxPool", {"replicas": 1})
    assert pool.patch({"status": {"replicas": 1, "selector": "sandyard.dev/pool=one"}}, status=True)[0] == 200
    assert plane.kubectl("scale", "sbp/one", "--replicas=3").returncode == 0
    assert pool.read()["spec"]["replicas"] == 3
    scale = plane.request("GET", f"{pool.path}/scale").json()
    assert scale["spec"]["replicas"] == 3
    assert scale["status"] == {"replicas": 1, "selector": "sandyard.dev/pool=one"}


@pytest.mark.parametrize(
    ("short", "of_kind"),
    [("sbt", "SandboxTask"), ("sb", "Sandbox"), ("sbp", "SandboxPool"), ("sbc", "SandboxClass")],
)
def test_short_names_and_explanations(plane: ControlPlane, short: str, of_kind: str) -> None:
    explained = plane.kubectl("explain", f"{short}.spec").stdout
    assert f"KIND:       {of_kind}" in explained
    assert "<no description>" not in explained


def test_every_field_is_explained(definitions: dict[str, dict[str, Any]], kind: str) -> None:
    schema = definitions[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert silent(schema, kind) == ["metadata"]


def silent(schema: dict[str, Any], name: str) -> list[str]:
    """Return the fields below a schema that have no description."""
    children = [(field, child) for field, child in schema.get("properties", {}).items()]
    inner = [("[]", schema[part]) for part in ("items", "additionalProperties") if part in schema]
    own = [name] if "description" not in schema and name != "[]" else []
    return own + [field for child_name, child in children + inner for field in silent(child, child_name)]


def test_another_project_may_have_sandboxes_too(plane: ControlPlane, store: Store) -> None:
    names = {"plural": "sandboxes", "singular": "sandbox", "kind": "Sandbox", "listKind": "SandboxList"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    other = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sandboxes.agents.invalid"},
        "spec": {"group": "agents.invalid", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    store.create("Sandbox", {})
    assert plane.request("POST", DEFINITIONS, other).status_code == 201
    try:
        for ours in ("sb", "sandboxes.sandyard.dev"):
            found = json.loads(plane.kubectl("get", ours, "-o", "json").stdout)
            assert [item["apiVersion"] for item in found["items"]] == ["sandyard.dev/v1alpha1"]
    finally:
        plane.request("DELETE", f"{DEFINITIONS}/sandboxes.agents.invalid")
