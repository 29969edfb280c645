"""Prove, before anyone trusts the cluster, that NetworkPolicy is enforced and that user namespaces work.

A listener, a client that a policy allows and one that it does not, all with user namespaces of their own. The denied
client is judged only after the allowed one connected, so a listener that is down never passes for a policy.
"""

import json
import time
import uuid
from typing import Any, Final

from sandyard_node.errors import NodeError
from sandyard_node.kubectl import Kubectl, wait_until

PORT: Final = 8080
READY_SECONDS: Final = 120
ENFORCED_SECONDS: Final = 60
CONNECT_SECONDS: Final = 2
IDENTITY_MAP: Final = ["0", "0", "4294967295"]
NOBODY: Final = 65534


def prove(kubectl: Kubectl, *, image: str, user_namespaces: bool = True) -> None:
    """Raise unless both hold. Leaves nothing behind."""
    namespace = f"sandyard-canary-{uuid.uuid4().hex[:6]}"
    kubectl.apply(json.dumps(_namespace(namespace)))
    try:
        listen = f"httpd -f -p {PORT} -h /tmp"
        pods = [
            _pod("listener", image, listen, user_namespaces=user_namespaces),
            _pod("allowed", image, "sleep 3600", user_namespaces=user_namespaces),
            _pod("denied", image, "sleep 3600", user_namespaces=user_namespaces),
        ]
        kubectl("-n", namespace, "create", "-f", "-", stdin=_list(pods))
        ready = ["wait", "--for=condition=Ready", "pod", "--all", f"--timeout={READY_SECONDS}s"]
        wait_until(
            "the canary pods are ready",
            lambda: kubectl.succeeds("-n", namespace, *ready),
            seconds=READY_SECONDS,
            fix=f"kubectl -n {namespace} describe pods",
        )
        if user_namespaces:
            _prove_user_namespace(kubectl, namespace)
        _prove_policy(kubectl, namespace)
    finally:
        kubectl("delete", "namespace", namespace, "--wait=false")


def _prove_user_namespace(kubectl: Kubectl, namespace: str) -> None:
    shown = kubectl("-n", namespace, "exec", "listener", "--", "cat", "/proc/self/uid_map").split()
    if shown == IDENTITY_MAP:
        raise NodeError(
            "a pod with hostUsers: false still has the machine's user IDs.",
            fix="the kernel must have user namespaces and idmapped mounts (5.19 or newer)",
        )


def _prove_policy(kubectl: Kubectl, namespace: str) -> None:
    address = kubectl("-n", namespace, "get", "pod", "listener", "-o", "jsonpath={.status.podIP}")

    def connects(pod: str) -> bool:
        probe = f"nc -w {CONNECT_SECONDS} {address} {PORT} </dev/null"
        return kubectl.succeeds("-n", namespace, "exec", pod, "--", "sh", "-c", probe)

    wait_until(  # the control: without a policy both connect
        "the canary pods connect while no policy is there",
        lambda: connects("allowed") and connects("denied"),
        seconds=READY_SECONDS,
        fix="the pod network is broken; make cluster-down, then make cluster",
    )
    kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(_policy()))
    deadline = time.monotonic() + ENFORCED_SECONDS
    while connects("denied"):
        if time.monotonic() > deadline:
            raise NodeError(
                "NetworkPolicy is not enforced: a denied pod connects.",
                fix="read the log of kube-router (on kind: of kindnet); it must run on every node",
            )
    if not connects("allowed"):
        raise NodeError("NetworkPolicy also stops the pod it allows.", fix="read the log of what enforces it")


def _namespace(name: str) -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _pod(name: str, image: str, command: str, *, user_namespaces: bool) -> dict[str, Any]:
    container = {
        "name": name,
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", command],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    if name == "listener":
        container["readinessProbe"] = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"canary": name}},
        "spec": {
            "hostUsers": not user_namespaces,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": NOBODY,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        },
    }


def _policy() -> dict[str, Any]:
    source = {"podSelector": {"matchLabels": {"canary": "allowed"}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "canary"},
        "spec": {
            "podSelector": {"matchLabels": {"canary": "listener"}},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [source], "ports": [{"port": PORT}]}],
        },
    }


def _list(items: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
