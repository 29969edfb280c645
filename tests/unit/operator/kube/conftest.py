"""An authority whose root key is always the same."""

import pytest

from harness.root_keys import NOW, SEED, pem
from sandyard_operator.kube.authority import ROOT_KEY, Authority, generate


@pytest.fixture(scope="session")
def authority() -> Authority:
    """Return the authority."""
    return Authority.read(generate(now=NOW) | {ROOT_KEY: pem(SEED)})
