"""Fixtures of the hostile tests: one tenant, and the controls run once in a plain pod."""

import subprocess
from collections.abc import Iterator

import pytest

from harness.plain import plain_pod
from harness.tenant import Tenant, new_tenant
from isolation.attacks import ATTACKS, CONTROL, all_in_one, script, verdicts


@pytest.fixture(scope="session")
def tenant() -> Iterator[Tenant]:
    """Share one namespace among the hostile tasks."""
    with new_tenant("isolation") as tenant:
        yield tenant


@pytest.fixture(scope="session")
def runtime_image() -> str:
    """Return the image the default class names."""
    read = ["kubectl", "get", "sbc", "default", "-o", "jsonpath={.spec.image}"]
    return subprocess.run(read, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="session")
def controls(runtime_image: str) -> Iterator[dict[str, str]]:
    """Return what each attack said in a plain pod."""
    with new_tenant("control") as tenant:
        codes = [script(attack) for attack in ATTACKS.values()]
        log = plain_pod(tenant, runtime_image, name="control", command=["/usr/bin/python3.13", "-c", CONTROL, *codes])
        yield verdicts(log)


@pytest.fixture(scope="session")
def attempts(tenant: Tenant) -> dict[str, str]:
    """Return what each attack said in a sandbox."""
    status = tenant.run(all_in_one())
    assert status["reason"] == "Succeeded", status
    return verdicts(status["result"]["stdout"]["text"])
