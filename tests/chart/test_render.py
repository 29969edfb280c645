"""What the chart renders: snapshots for several value sets, required values, the schema's refusals."""

import json
import re
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from chart.conftest import Helm
from chart.release import CHART, VALUES
from yard.steps import ROOT

SETS = sorted(path.stem for path in VALUES.glob("*.yaml"))


class YamlFile(SingleFileSnapshotExtension):
    """One readable file for each value set."""

    file_extension = "yaml"
    _write_mode = WriteMode.TEXT


def documents(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


@pytest.mark.parametrize("values", SETS)
def test_the_chart_passes_the_strict_linter(helm: Helm, values: str) -> None:
    done = helm("lint", "--strict", str(CHART), "--values", str(VALUES / f"{values}.yaml"))
    assert "0 chart(s) failed" in done.stdout
    assert "WARNING" not in done.stdout


@pytest.mark.parametrize("values", SETS)
def test_the_chart_renders_as_recorded(helm: Helm, values: str, snapshot: SnapshotAssertion) -> None:
    rendered = documents(helm.rendered(values))
    others = [document for document in rendered if document["kind"] != "CustomResourceDefinition"]
    text = yaml.safe_dump_all(others, sort_keys=False, width=110)
    assert text == snapshot(extension_class=YamlFile, name=values)


def test_the_crds_are_the_generated_ones_and_are_kept_on_uninstall(helm: Helm) -> None:
    rendered = [d for d in documents(helm.rendered("minimal")) if d["kind"] == "CustomResourceDefinition"]
    generated = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))]
    assert len(rendered) == len(generated) > 0
    for ours, source in zip(sorted(rendered, key=_name), sorted(generated, key=_name), strict=True):
        assert ours["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
        assert ours == source


def _name(document: dict[str, Any]) -> str:
    return str(document["metadata"]["name"])


@pytest.mark.parametrize("values", SETS)
def test_every_namespaced_object_names_its_namespace_and_carries_the_labels(helm: Helm, values: str) -> None:
    for document in documents(helm.rendered(values)):
        if document["kind"] == "CustomResourceDefinition":
            continue
        assert document["metadata"]["labels"]["app.kubernetes.io/name"] == "sandyard", document
        cluster_wide = document["kind"].startswith(("Cluster", "Validating", "SandboxClass"))
        assert document["metadata"].get("namespace") == (None if cluster_wide else "sandyard-system")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--set", "defaultClass.create=false"], "set operator.image"),
        (["--set", "operator.image=x@sha256:0"], "set defaultClass.image"),
    ],
    ids=["operator", "class"],
)
def test_a_required_value_that_is_missing_is_asked_for(helm: Helm, args: list[str], message: str) -> None:
    done = helm.template(*args, check=False)
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize(
    ("setting", "place"),
    [
        ("unknown=1", "unknown"),
        ("operator.unknown=1", "unknown"),
        ("operator.image=two words", "/operator/image"),
        ("operator.replicas=-1", "/operator/replicas"),
        ("operator.replicas=two", "/operator/replicas"),
        ("operator.logLevel=loud", "/operator/logLevel"),
        ("operator.podLabels.sandyard\\.dev/role=task", "sandyard.dev/role"),
        ("operator.podLabels.app\\.kubernetes\\.io/name=other", "app.kubernetes.io/name"),
        ("crds.install=perhaps", "/crds/install"),
        ("defaultClass.index.user=me", "/defaultClass/index"),
        ("defaultClass.index.caBundle=pem", "/defaultClass/index"),
        ("defaultClass.spec.image=other", "image"),
        ("networkPolicy.apiServer.ports={0}", "/networkPolicy/apiServer/ports/0"),
        ("admission.enabled=maybe", "/admission/enabled"),
    ],
)
def test_the_schema_refuses_a_wrong_value_and_names_its_place(helm: Helm, setting: str, place: str) -> None:
    flag = "--set-json" if setting.endswith("}") else "--set"
    value = setting.replace("={0}", "=[0]") if flag == "--set-json" else setting
    done = helm.template("--values", str(VALUES / "minimal.yaml"), flag, value, check=False)
    assert done.returncode != 0
    assert place in done.stderr, done.stderr


def test_every_value_has_a_description_and_a_default_and_stands_in_the_document() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    document = (ROOT / "docs" / "chart.md").read_text()
    for path, described in _leaves(schema):
        assert described.get("description"), path
        if path[0] == "global":
            continue
        place: Any = values
        for name in path:
            assert name in place, f"{'.'.join(path)} has no default in values.yaml"
            place = place[name]
        assert re.search(rf"`{re.escape('.'.join(path))}`", document), f"{'.'.join(path)} is not in docs/chart.md"


def _leaves(schema: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """Walk down to what is a value of its own: maps of free form and lists are one value."""
    if "properties" not in schema:
        return [(path, schema)]
    return [leaf for name, inner in schema["properties"].items() for leaf in _leaves(inner, (*path, name))]


def test_a_pod_disruption_budget_comes_with_a_second_replica_only(helm: Helm) -> None:
    assert "PodDisruptionBudget" not in helm.rendered("minimal")
    assert "PodDisruptionBudget" in helm.rendered("full")


def test_secrets_of_all_namespaces_are_readable_only_when_asked_for(helm: Helm) -> None:
    assert _may_read_any_secret(documents(helm.rendered("full")))
    assert not _may_read_any_secret(documents(helm.rendered("minimal")))


def _may_read_any_secret(rendered: list[dict[str, Any]]) -> bool:
    rules = next(d["rules"] for d in rendered if d["kind"] == "ClusterRole" and _name(d) == "sandyard-operator")
    return any("secrets" in rule["resources"] and "resourceNames" not in rule for rule in rules)
