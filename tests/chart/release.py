"""The chart's release in tests: where it is, how it is installed, and how its policies are waited for."""

import subprocess
from functools import partial
from pathlib import Path
from typing import Final

from chart.control_plane import ControlPlane
from harness.tenant import eventually
from yard.steps import ROOT

CHART: Final = ROOT / "helm" / "sandyard"
VALUES: Final = Path(__file__).parent / "values"
NAMESPACE: Final = "sandyard-system"
RELEASE: Final = "sandyard"
OPERATOR: Final = f"system:serviceaccount:{NAMESPACE}:sandyard-operator"


def install(plane: ControlPlane, values: str, *args: str) -> None:
    """Install the chart into a new namespace and wait for what controllers make of it.

    Without hooks, since no node runs their Jobs; the second step brings the default class.
    """
    given = ("--values", str(VALUES / f"{values}.yaml"), *args)
    helm(plane, "install", "--create-namespace", "--no-hooks", *given)
    until_kinds_are_served(plane)
    helm(plane, "upgrade", *given)
    until_roles_are_aggregated(plane)


def helm(plane: ControlPlane, verb: str, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run helm install, upgrade or uninstall on the release."""
    chart = [] if verb == "uninstall" else [str(CHART)]
    return plane.run("helm", verb, RELEASE, *chart, "--namespace", NAMESPACE, *args, check=check)


def purge(plane: ControlPlane) -> None:
    """Remove the release and all objects; the kinds stay, for a CRD deleted when young may take minutes to go."""
    helm(plane, "uninstall", "--no-hooks", "--ignore-not-found")
    plane.run("kubectl", "delete", "sbt,sb,sbp,sbc", "--all", "--all-namespaces")


def until_kinds_are_served(plane: ControlPlane) -> None:
    """Wait until the CRDs are in force."""
    eventually(partial(plane.call, "GET", "/apis/sandyard.dev/v1alpha1/sandboxclasses"), lambda answer: answer.allowed)


def until_roles_are_aggregated(plane: ControlPlane) -> None:
    """Wait for the controller that adds the tenant roles to ``edit``."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit"
    eventually(
        lambda: [group for rule in plane.must("GET", path)["rules"] or [] for group in rule.get("apiGroups", [])],
        lambda groups: "sandyard.dev" in groups,
    )
