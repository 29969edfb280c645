"""Fixtures of the chart's tests: Helm, and control planes with the chart installed."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chart.control_plane import ControlPlane, control_plane
from chart.people import settle, until_policies_are_in_force
from chart.release import CHART, NAMESPACE, VALUES, install, purge
from harness.control_plane import program


class Helm:
    """The helm of the cluster's build, on this chart."""

    def __call__(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one command."""
        done = subprocess.run([program("helm"), *args], text=True, capture_output=True, check=False)
        assert not check or done.returncode == 0, f"helm {' '.join(args)}: {done.stderr}{done.stdout}"
        return done

    def template(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Render the chart."""
        return self("template", "sandyard", str(CHART), "--namespace", NAMESPACE, *args, check=check)

    def rendered(self, values: str) -> str:
        """Render the chart with one of the value sets."""
        return self.template("--values", str(VALUES / f"{values}.yaml")).stdout


@pytest.fixture(scope="session")
def helm() -> Helm:
    """Give helm."""
    return Helm()


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Give a control plane with the chart installed."""
    with control_plane(_folder(tmp_path_factory)) as plane:
        install(plane, "minimal")
        settle(plane)
        until_policies_are_in_force(plane)
        yield plane


@pytest.fixture(scope="session")
def unguarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Give the control of every refusal: the same without the admission policies."""
    with control_plane(_folder(tmp_path_factory)) as plane:
        install(plane, "minimal", "--set", "admission.enabled=false")
        settle(plane)
        yield plane


@pytest.fixture(scope="session")
def spare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Give a control plane for what installs and removes."""
    with control_plane(_folder(tmp_path_factory)) as plane:
        yield plane


@pytest.fixture
def empty_plane(spare: ControlPlane) -> Iterator[ControlPlane]:
    """Give it with nothing installed, and take away afterwards what is kept on uninstall as well."""
    yield spare
    purge(spare)


def _folder(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("plane")
