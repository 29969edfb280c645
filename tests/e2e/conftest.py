"""Fixtures of the end-to-end tests: namespaces on a cluster with the chart and the private index installed.

``make test`` leaves it so; KUBECONFIG says where it is.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.tenant import Tenant, new_tenant


@pytest.fixture(scope="session", autouse=True)
def _cluster() -> None:
    if not os.environ.get("KUBECONFIG") or not Path(os.environ["KUBECONFIG"]).exists():
        pytest.exit("e2e: KUBECONFIG names no file. Run `make test`, or `make deploy` and export KUBECONFIG.", 2)


@pytest.fixture(scope="module")
def tenant() -> Iterator[Tenant]:
    """Share one namespace among a module's tests."""
    with new_tenant() as tenant:
        yield tenant


@pytest.fixture
def fresh_tenant() -> Iterator[Tenant]:
    """Give a test that counts tasks or pods a namespace of its own."""
    with new_tenant() as tenant:
        yield tenant
