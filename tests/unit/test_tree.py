"""Rules about the tree itself that no linter knows."""

import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

from sandyard_api.names import RELEASE

ROOT = Path(__file__).parents[2]
MODULE_LINES = 400
MEDIAN_LINES = 150


def modules() -> list[Path]:
    return [path for room in ("api", "operator", "runtime") for path in (ROOT / room / "src").rglob("*.py")]


def test_operator_is_a_folder_and_never_a_package() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    done = subprocess.run([sys.executable, "-c", "import operator; operator.add"], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in modules()}
    assert {path: n for path, n in lengths.items() if n > MODULE_LINES} == {}
    assert sorted(lengths.values())[len(lengths) // 2] <= MEDIAN_LINES


def test_every_module_says_why_it_is_there() -> None:
    silent = [path for path in modules() if path.read_text().strip() and not path.read_text().startswith('"""')]
    assert silent == []


def test_distribution_code_and_chart_are_of_one_release() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((ROOT / "helm" / "sandyard" / "Chart.yaml").read_text())
    assert project["version"] == chart["version"] == chart["appVersion"] == RELEASE
