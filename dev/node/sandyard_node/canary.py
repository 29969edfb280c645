"""Prove, before anyone trusts the cluster, that NetworkPolicy is enforced and that user namespaces work.

A listener on each node, a client that a policy allows and one that it does not, all with user namespaces of their own.
Both clients must connect before there is a policy, so a listener that is down never passes for one.
"""

import json
import uuid
from dataclasses import dataclass
from typing import Any, Final

from sandyard_node.errors import NodeError
from sandyard_node.kubectl import Kubectl, wait_until

PORT: Final = 8080
READY_SECONDS: Final = 120
ENFORCED_SECONDS: Final = 60
CONNECT_SECONDS: Final = 2
IDENTITY_MAP: Final = ["0", "0", "4294967295"]
NOBODY: Final = 65534
ALLOWED: Final = "allowed"
DENIED: Final = "denied"
MARK: Final = "sandyard.dev/canary"  # on the namespaces, so that one left by an aborted run is found


def prove(kubectl: Kubectl, *, image: str) -> None:
    """Raise unless both hold on every node. Leaves nothing behind."""
    _delete(kubectl, f"-l={MARK}")
    canary = Canary(kubectl, image, f"sandyard-canary-{uuid.uuid4().hex[:6]}", tuple(_nodes(kubectl)))
    kubectl("create", "-f", "-", stdin=json.dumps(_namespace(canary.namespace)))
    try:
        canary.check()
    finally:
        _delete(kubectl, canary.namespace)


@dataclass(frozen=True, slots=True)
class Canary:
    """Pods in a namespace of their own: a listener on each node, and two clients."""

    kubectl: Kubectl
    image: str
    namespace: str
    nodes: tuple[str, ...]

    def check(self) -> None:
        """Start the pods and look at both claims."""
        self._start()
        for node in self.nodes:
            self._check_user_namespace(node)
        self._check_policy()

    def _start(self) -> None:
        wait_until(
            "the canary's service account is there",
            lambda: self._succeeds("get", "serviceaccount", "default"),
            seconds=READY_SECONDS,
            fix="read the log of kube-controller-manager",
        )
        pods = [_pod(name, self.image, "sleep 3600") for name in (ALLOWED, DENIED)]
        pods += [_listener(node, self.image) for node in self.nodes]
        items = {"apiVersion": "v1", "kind": "List", "items": pods}
        self.kubectl("-n", self.namespace, "create", "-f", "-", stdin=json.dumps(items))
        wait_until(
            "the canary pods are ready",
            lambda: self._succeeds("wait", "--for=condition=Ready", "pod", "--all", "--timeout=10s"),
            seconds=READY_SECONDS,
            fix="run again, and meanwhile: kubectl get events -A",
        )

    def _check_user_namespace(self, node: str) -> None:
        shown = self._exec(_listener_name(node), "cat /proc/self/uid_map").split()
        if shown == IDENTITY_MAP:
            raise NodeError(
                f"on {node} a pod with hostUsers: false still has the machine's user IDs.",
                fix="the kernel must have user namespaces and idmapped mounts (5.19 or newer)",
            )

    def _check_policy(self) -> None:
        addresses = [self._address(node) for node in self.nodes]
        wait_until(  # the control: without a policy both connect
            "the canary pods connect while no policy is there",
            lambda: all(self._connects(pod, address) for pod in (ALLOWED, DENIED) for address in addresses),
            seconds=READY_SECONDS,
            fix="the pod network is broken; make cluster-down, then make cluster",
        )
        self.kubectl("-n", self.namespace, "create", "-f", "-", stdin=json.dumps(_policy()))
        wait_until(
            "a pod that NetworkPolicy denies is kept out",
            lambda: not any(self._connects(DENIED, address) for address in addresses),
            seconds=ENFORCED_SECONDS,
            fix="read the log of kube-router (on kind: of kindnet); it must run on every node",
        )
        if not all(self._connects(ALLOWED, address) for address in addresses):
            raise NodeError("NetworkPolicy also keeps out the pod it allows.", fix="read the log of what enforces it")

    def _connects(self, pod: str, address: str) -> bool:
        probe = f"if nc -w {CONNECT_SECONDS} {address} {PORT} </dev/null; then echo yes; else echo no; fi"
        return self._exec(pod, probe).strip() == "yes"

    def _address(self, node: str) -> str:
        return self.kubectl("-n", self.namespace, "get", "pod", _listener_name(node), "-o", "jsonpath={.status.podIP}")

    def _exec(self, pod: str, command: str) -> str:
        return self.kubectl("-n", self.namespace, "exec", pod, "--", "sh", "-c", command)

    def _succeeds(self, *args: str) -> bool:
        return self.kubectl.succeeds("-n", self.namespace, *args)


def _nodes(kubectl: Kubectl) -> list[str]:
    return kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}").split()


def _delete(kubectl: Kubectl, which: str) -> None:
    kubectl("delete", "namespace", which, "--wait=false", "--ignore-not-found")


def _namespace(name: str) -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted", MARK: ""}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _listener_name(node: str) -> str:
    return f"listener-{node}"


def _listener(node: str, image: str) -> dict[str, Any]:
    pod = _pod(_listener_name(node), image, f"httpd -f -p {PORT} -h /tmp")
    pod["metadata"]["labels"] = {"canary": "listener"}
    pod["spec"]["nodeName"] = node
    pod["spec"]["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": PORT}, "periodSeconds": 1}
    return pod


def _pod(name: str, image: str, command: str) -> dict[str, Any]:
    container = {
        "name": "canary",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", command],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"canary": name}},
        "spec": {
            "hostUsers": False,
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
    source = {"podSelector": {"matchLabels": {"canary": ALLOWED}}}
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
