"""Fixtures of the contract tests: one API server for the session, with our CRDs as they are in the tree."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from harness.control_plane import ControlPlane, ProgramMissingError, control_plane, program
from harness.objects import PLURALS, collection
from harness.store import DEFINITIONS, Store

CRDS: Final = Path(__file__).parents[2] / "crds"
ESTABLISH_SECONDS: Final = 30
POLL_SECONDS: Final = 0.05


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Start an API server that knows nothing of ours yet."""
    try:
        program("kube-apiserver")
    except ProgramMissingError as error:
        pytest.exit(f"contract: {error}", 2)
    with control_plane(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture(scope="session")
def definitions(bare: ControlPlane) -> dict[str, dict[str, Any]]:
    """Create each CRD, wait until it is served, and return it as the API server has it."""
    for path in sorted(CRDS.glob("*.yaml")):
        created = bare.request("POST", DEFINITIONS, yaml.safe_load(path.read_text()))
        assert created.status_code == 201, created.text
    return {kind: _established(bare, f"{plural}.sandyard.dev") for kind, plural in PLURALS.items()}


@pytest.fixture(scope="session")
def plane(bare: ControlPlane, definitions: dict[str, dict[str, Any]]) -> ControlPlane:
    """Return the API server with our kinds served."""
    for kind in definitions:
        _served(bare, collection(kind))
    return bare


@pytest.fixture(params=PLURALS)
def kind(request: pytest.FixtureRequest) -> str:
    """Run a test for each kind."""
    return str(request.param)


@pytest.fixture
def store(plane: ControlPlane) -> Iterator[Store]:
    """Give a test objects of its own."""
    store = Store(plane)
    yield store
    store.clear()


def _established(plane: ControlPlane, name: str) -> dict[str, Any]:
    deadline = time.monotonic() + ESTABLISH_SECONDS
    while True:
        found: dict[str, Any] = plane.request("GET", f"{DEFINITIONS}/{name}").json()
        conditions = found["status"].get("conditions") or []
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            return found
        assert time.monotonic() < deadline, conditions
        time.sleep(POLL_SECONDS)


def _served(plane: ControlPlane, path: str) -> None:
    deadline = time.monotonic() + ESTABLISH_SECONDS
    while not plane.request("GET", path).is_success:
        assert time.monotonic() < deadline, path
        time.sleep(POLL_SECONDS)
