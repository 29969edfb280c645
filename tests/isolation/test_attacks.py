"""Each attack works in a plain pod and fails in a sandbox; the sandbox's agent lives to tell it."""

import pytest

from harness.tenant import Tenant
from isolation.attacks import ATTACKS, script


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_that_works_in_a_plain_pod_fails_in_a_sandbox(
    tenant: Tenant, controls: dict[str, str], name: str
) -> None:
    assert "attack worked: True" in controls[name]
    status = tenant.run(script(ATTACKS[name]))
    assert status["reason"] == "Succeeded", status
    assert "attack worked: False" in status["result"]["stdout"]["text"]
