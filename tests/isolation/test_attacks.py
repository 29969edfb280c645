"""Each attack works in a plain pod and fails in a sandbox; the sandbox's agent lives to tell it."""

import pytest

from isolation.attacks import ATTACKS


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_that_works_in_a_plain_pod_fails_in_a_sandbox(
    controls: dict[str, str], attempts: dict[str, str], name: str
) -> None:
    assert "attack worked: True" in controls[name]
    assert "attack worked: False" in attempts[name]
