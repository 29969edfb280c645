"""The models read what the API server stores, and refuse again what it refuses."""

import subprocess
import sys
from typing import Any, Final

import pytest
from pydantic import ValidationError

from harness.objects import FULLEST, SMALLEST, WRONG, Wrong, manifest
from sandyard_api.conditions import Condition
from sandyard_api.crdgen import KINDS
from sandyard_api.task import SandboxTask, TaskSpec
from sandyard_api.task_status import TaskStatus

MODELS: Final = {kind.name: kind.model for kind in KINDS}
METADATA: Final = {
    "name": "one",
    "namespace": "default",
    "uid": "u",
    "resourceVersion": "1",
    "generation": 1,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "managedFields": [],
}
OBJECTS: Final = [
    *SMALLEST.items(),
    *((kind, spec) for kind, specs in FULLEST.items() for spec in specs),
]


def stored(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return manifest(kind, spec) | {"metadata": METADATA}


@pytest.mark.parametrize(("kind", "spec"), OBJECTS, ids=[kind for kind, _ in OBJECTS])
def test_a_good_object_is_read_and_written_back_as_it_was(kind: str, spec: dict[str, Any]) -> None:
    read = MODELS[kind].model_validate(stored(kind, spec))
    written = read.model_dump(mode="json", by_alias=True, exclude_unset=True)["spec"]
    assert MODELS[kind].model_validate(stored(kind, written)) == read
    assert written.keys() == spec.keys()


@pytest.mark.parametrize("wrong", [wrong for wrong in WRONG if wrong.model_refuses], ids=str)
def test_a_wrong_object_is_refused(wrong: Wrong) -> None:
    with pytest.raises(ValidationError):
        MODELS[wrong.kind].model_validate(stored(wrong.kind, wrong.spec))


@pytest.mark.parametrize("kind", MODELS)
def test_a_spec_with_an_unknown_field_is_refused(kind: str) -> None:
    with pytest.raises(ValidationError, match="surprise"):
        MODELS[kind].model_validate(stored(kind, SMALLEST[kind] | {"surprise": 1}))


@pytest.mark.parametrize("kind", MODELS)
def test_a_status_of_a_newer_operator_is_read(kind: str) -> None:
    body = stored(kind, SMALLEST[kind]) | {"status": {"surprise": 1, "observedGeneration": 3}}
    read = MODELS[kind].model_validate(body)
    assert read.model_dump()["status"]["observed_generation"] == 3


@pytest.mark.parametrize(("kind", "other"), [("SandboxTask", "Sandbox"), ("Sandbox", "SandboxTask")])
def test_an_object_of_another_kind_is_refused(kind: str, other: str) -> None:
    with pytest.raises(ValidationError, match="kind"):
        MODELS[kind].model_validate(stored(other, SMALLEST[kind]))


def test_a_status_is_written_with_the_names_of_the_contract() -> None:
    status = TaskStatus(
        code_sha256="ab" * 32,
        lock_sha256="cd" * 32,
        conditions=(
            Condition(
                type="Accepted",
                status="True",
                reason="Accepted",
                message="",
                last_transition_time="2026-01-01T00:00:00Z",
            ),
        ),
    )
    written = status.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    assert written == {
        "codeSHA256": "ab" * 32,
        "lockSHA256": "cd" * 32,
        "conditions": [
            {
                "type": "Accepted",
                "status": "True",
                "reason": "Accepted",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }


def test_a_model_is_frozen() -> None:
    task = SandboxTask.model_validate(stored("SandboxTask", {"code": "1"}))
    with pytest.raises(ValidationError, match="frozen"):
        task.spec.code = "2"  # type: ignore[misc]


def test_python_names_serve_as_well() -> None:
    assert TaskSpec(code="1", run_timeout_seconds=5).run_timeout_seconds == 5


@pytest.mark.parametrize("module", ["names", "wire"])
def test_what_an_agent_imports_drags_no_model_along(module: str) -> None:
    program = (
        f"import sys, sandyard_api.{module}; print([name for name in sys.modules if name.startswith('sandyard_api.')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"['sandyard_api.{module}']"
