"""``make test``: sets everything up, then runs the checks and the tests, the quick ones first.

Stops at the first group that fails. With SANDYARD_KEEP=1, or outside CI, the cluster is left running.
"""

import os
import sys
from typing import Final

from yard.bring_up import bring_up, environment
from yard.check import check
from yard.steps import Steps, main

GROUPS: Final = (
    ("contract tests on a real API server", ["tests/contract"]),
    ("chart tests", ["tests/chart"]),
    ("runtime tests", ["tests/runtime"]),
    ("end-to-end tests", ["tests/e2e"]),
    ("isolation tests", ["tests/isolation"]),
    ("fault tests", ["tests/faults"]),
)


def suite(steps: Steps) -> None:
    """Run everything."""
    check(steps)
    bring_up(steps)
    for title, paths in GROUPS:
        steps.command(title, [sys.executable, "-m", "pytest", "-q", *paths], live=True, env=environment())
    if os.environ.get("CI") and not os.environ.get("SANDYARD_KEEP"):
        steps.command("cluster down", ["make", "cluster-down"])


if __name__ == "__main__":
    main(suite)
