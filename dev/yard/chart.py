"""``make chart``: lint the chart with every set of values that the tests know, and package it into ``dist/``."""

import os
from typing import Final

from yard.bring_up import cache_folder
from yard.steps import ROOT, Steps, main

CHART: Final = ROOT / "helm" / "sandyard"
VALUES: Final = ROOT / "tests" / "chart" / "values"


def chart(steps: Steps) -> None:
    """Lint, then package."""
    programs = {"PATH": f"{cache_folder() / 'node' / 'bin'}:{os.environ['PATH']}"}
    hint = "Helm comes with the cluster's build: make cluster"
    for values in sorted(VALUES.glob("*.yaml")):
        steps.command(
            f"lint with {values.name}",
            ["helm", "lint", "--strict", CHART, "--values", values],
            env=programs,
            hint=hint,
        )
    steps.command("package", ["helm", "package", CHART, "--destination", ROOT / "dist"], env=programs, hint=hint)


if __name__ == "__main__":
    main(chart)
