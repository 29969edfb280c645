"""Fixtures of the fault tests on the real cluster: operators on the host, a witness, a class that may reach it."""

import json
from collections.abc import Iterator

import pytest

from harness.host_operator import SYSTEM, HostOperators, host_operators
from harness.witness import ADDRESS, Witness, witness

WITNESSED = "witnessed"


@pytest.fixture
def operators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostOperators]:
    """Take the place of the chart's operators."""
    with host_operators(tmp_path_factory.mktemp("operators")) as operators:
        yield operators


@pytest.fixture(scope="session")
def witnessed_class() -> Iterator[str]:
    """Give the name of the default class with the way to the witness added."""
    spec = SYSTEM.get("default", "sbc")["spec"]
    spec["network"] = {"allowedEgress": [{"cidr": f"{ADDRESS}/32"}]}
    manifest = {"apiVersion": "sandyard.dev/v1alpha1", "kind": "SandboxClass", "metadata": {"name": WITNESSED}}
    SYSTEM.kubectl("apply", "-f", "-", stdin=json.dumps({**manifest, "spec": spec}))
    yield WITNESSED
    SYSTEM.kubectl("delete", "sbc", WITNESSED)


@pytest.fixture(scope="session", name="witness")
def _witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Witness]:
    """Count starts outside the cluster."""
    with witness(tmp_path_factory.mktemp("witness")) as found:
        yield found
