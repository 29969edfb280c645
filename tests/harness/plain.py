"""The control of an attack: a pod without protection, of the same image and user."""

from harness.tenant import Tenant, eventually


def plain_pod(tenant: Tenant, image: str, *, name: str, command: list[str]) -> str:
    """Run a pod without any protection to its end and return its log."""
    container = {"name": "c", "image": image, "command": command, "securityContext": {"runAsUser": 10002}}
    spec = {"restartPolicy": "Never", "containers": [container]}
    tenant.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    eventually(
        lambda: tenant.get(name, "pod").get("status", {}).get("phase"),
        lambda phase: phase in {"Succeeded", "Failed"},
        seconds=180,
    )
    return tenant.kubectl("logs", name).stdout
