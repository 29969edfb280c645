"""``make check``: everything that can be said of the tree without running it on a cluster."""

import sys
from pathlib import Path

from yard.steps import Steps, main

BIN = Path(sys.executable).parent
COVERED = "*/sandyard_operator/decide/*,*/sandyard_api/pep723.py,*/sandyard_api/requirements.py"


def check(steps: Steps) -> None:
    """Check style, types, imports, dependencies, generated files, unit tests and their coverage."""
    steps.command("style (ruff)", [BIN / "ruff", "check", "."])
    steps.command("format (ruff)", [BIN / "ruff", "format", "--check", "."], hint="Run: .venv/bin/ruff format .")
    steps.command("types (mypy strict)", [BIN / "mypy"])
    steps.command("import rules (import-linter)", [BIN / "lint-imports", "--no-cache"])
    steps.command("declared dependencies (deptry)", [BIN / "deptry", "api/src", "operator/src", "runtime/src"])
    steps.command(
        "generated CRDs are current",
        [sys.executable, "-m", "sandyard_api.crdgen", "--check"],
        hint="Run: make crds",
    )
    data = {"COVERAGE_FILE": ".coverage.unit"}
    steps.command(
        "unit tests",
        [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-q", "tests/unit"],
        live=True,
        env=data,
    )
    steps.command(
        "branch coverage of decide/ and the reader is 100 %",
        [
            sys.executable,
            "-m",
            "coverage",
            "report",
            f"--include={COVERED}",
            "--fail-under=100",
            "--show-missing",
        ],
        env=data,
    )


if __name__ == "__main__":
    main(check)
