"""A pod as the operator makes it, and what a tenant might make of it."""

from typing import Any, Final

from chart.people import TEAM

PODS: Final = f"/api/v1/namespaces/{TEAM}/pods"
DRY: Final = "?dryRun=All"
LABEL: Final = {"sandyard.dev/role": "task"}


def container(name: str) -> dict[str, Any]:
    """Return a container that meets every demand."""
    context = {
        "runAsUser": 10002,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    resources = {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    return {"name": name, "image": "localhost/none:1", "resources": resources, "securityContext": context}


def restricted_spec() -> dict[str, Any]:
    """Return a pod's spec that meets every demand."""
    return {
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        "containers": [container("agent"), container("runner")],
        "volumes": [{"name": "w", "emptyDir": {}}, {"name": "t", "secret": {"secretName": "t"}}],
    }


def plain_spec() -> dict[str, Any]:
    """Return the spec of a tenant's ordinary pod."""
    return {"containers": [{"name": "c", "image": "localhost/none:1"}]}


def pod(name: str, spec: dict[str, Any], labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a pod."""
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
