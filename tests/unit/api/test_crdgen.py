"""The CRDs are generated whole, hold none of the things the API server refuses, and drift is told."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict, Field

from sandyard_api import crdgen
from sandyard_api.crdgen import KINDS, Kind, definition, files, main
from sandyard_api.schema import Rule, SpecModel, rules
from sandyard_api.structural import structural

REFUSED_KEYS = {"$ref", "$defs", "const", "title", "exclusiveMinimum", "uniqueItems", "propertyNames"}
ROOT_TYPES = {"apiVersion", "kind", "metadata"}  # the API server bounds them itself


def schema_of(kind: Kind) -> dict[str, Any]:
    schema: dict[str, Any] = definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema below one, with its path."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        if path or name not in ROOT_TYPES:
            yield from nodes(child, f"{path}.{name}")
    for part in ("items", "additionalProperties"):
        if part in schema:
            yield from nodes(schema[part], f"{path}[]")


every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def test_the_files_in_the_tree_are_what_the_models_say() -> None:
    assert {path for path, text in files().items() if path.read_text() != text} == set()


@every_kind
def test_no_schema_holds_what_the_api_server_refuses(kind: Kind) -> None:
    for path, node in nodes(schema_of(kind)):
        assert not REFUSED_KEYS & node.keys(), path
        assert node.get("type") != "null", path
        assert node.get("default", 0) is not None, path
        assert ("properties" in node) + ("additionalProperties" in node) <= 1, path
        assert "type" in node or node.get("x-kubernetes-int-or-string"), path


@every_kind
def test_everything_that_can_grow_is_bounded(kind: Kind) -> None:
    for path, node in nodes(schema_of(kind)):
        match node.get("type"):
            case "string":
                assert node.keys() & {"maxLength", "enum", "format"}, path
            case "array":
                assert "maxItems" in node, path
            case "object" if "additionalProperties" in node:
                assert "maxProperties" in node, path
            case None:
                assert "maxLength" in node, path
            case _:
                pass


@every_kind
def test_every_list_says_how_it_merges(kind: Kind) -> None:
    types = {path: node.get("x-kubernetes-list-type") for path, node in nodes(schema_of(kind)) if "items" in node}
    assert set(types.values()) <= {"atomic", "set", "map"}
    assert types[".status.conditions"] == "map"


@every_kind
def test_a_status_has_no_defaults(kind: Kind) -> None:
    status = schema_of(kind)["properties"]["status"]
    assert [path for path, node in nodes(status, ".status") if "default" in node] == []


@every_kind
def test_every_rule_says_what_is_wrong(kind: Kind) -> None:
    for path, node in nodes(schema_of(kind)):
        for rule in node.get("x-kubernetes-validations", ()):
            assert rule["message"], path


class Inner(SpecModel):
    """An object with a rule."""

    model_config = ConfigDict(json_schema_extra=rules(Rule("self.size > 0", "size must be positive")))

    size: int = Field(default=1, description="Its size.")


class Outer(SpecModel):
    """An object whose field has another one."""

    inner: Inner = Field(
        default=Inner(),
        description="The inner one.",
        json_schema_extra=rules(Rule("self.size < 9", "size is too large")),
    )
    other: Inner = Field(default=Inner(size=2), description="Another.")
    plain: Inner | None = Field(default=None, description="A third.")


def test_rules_of_a_field_and_of_its_model_both_hold() -> None:
    fields = structural(Outer)["properties"]
    assert [rule["rule"] for rule in fields["inner"]["x-kubernetes-validations"]] == ["self.size > 0", "self.size < 9"]
    assert [rule["rule"] for rule in fields["plain"]["x-kubernetes-validations"]] == ["self.size > 0"]


def test_a_default_holds_what_the_fields_below_do_not_say() -> None:
    fields = structural(Outer)["properties"]
    assert fields["inner"]["default"] == {}
    assert fields["other"]["default"] == {"size": 2}
    assert "default" not in fields["plain"]
    assert "default" not in structural(Outer, defaults=False)["properties"]["other"]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have the generator write below a folder of the test's own."""
    monkeypatch.setattr(crdgen, "ROOT", tmp_path)
    monkeypatch.setattr(crdgen, "TARGETS", (tmp_path / "crds", tmp_path / "chart"))
    return tmp_path


def test_the_check_writes_nothing_and_tells_what_is_missing(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check"]) == 1
    assert list(elsewhere.iterdir()) == []
    assert "crds/sandyard.dev_sandboxtasks.yaml: differs from the models" in capsys.readouterr().out


def test_what_is_generated_passes_the_check_until_it_is_edited(elsewhere: Path) -> None:
    assert main([]) == 0
    assert main(["--check"]) == 0
    (elsewhere / "chart" / "sandyard.dev_sandboxes.yaml").write_text("edited")
    assert main(["--check"]) == 1
    assert main([]) == 0
    assert main(["--check"]) == 0


def test_a_kind_that_is_gone_leaves_no_file(elsewhere: Path) -> None:
    assert main([]) == 0
    stale = elsewhere / "crds" / "sandyard.dev_olds.yaml"
    stale.write_text("x")
    assert main(["--check"]) == 1
    assert main([]) == 0
    assert not stale.exists()
