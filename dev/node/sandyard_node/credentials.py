"""Who is who in the cluster: the components' certificates, and a kubeconfig for each client."""

import base64
import json
from datetime import datetime
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from sandyard_node import certificates
from sandyard_node.certificates import Identity
from sandyard_node.files import write
from sandyard_node.settings import Settings

API_PORT: Final = 6443
FRONT_PROXY: Final = "front-proxy-client"
KUBE_ROUTER: Final = "system:kube-router"


def make(settings: Settings, *, now: datetime) -> None:
    """Make all certificates and kubeconfigs that are missing or old."""
    pki = settings.state / "pki"
    plan = settings.addresses
    cluster = certificates.authority(pki, "ca", now=now)
    in_cluster = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
    serving = (*in_cluster, IPv4Address("127.0.0.1"), plan.api_service, plan.node(1))
    clients = [
        Identity("admin", "admin", ("system:masters",)),
        Identity("kube-controller-manager", "system:kube-controller-manager"),
        Identity("kube-scheduler", "system:kube-scheduler"),
        Identity("kube-proxy", "system:kube-proxy"),
        Identity("kube-router", KUBE_ROUTER),
    ]
    nodes = [
        Identity(
            f"kubelet-{node.name}",
            f"system:node:{node.name}",
            ("system:nodes",),
            (node.name, plan.node(node.number)),
        )
        for node in settings.nodes
    ]
    servers = [
        Identity("apiserver", "kube-apiserver", hosts=serving),
        Identity("apiserver-to-kubelet", "kube-apiserver-kubelet-client", ("system:masters",)),
    ]
    for identity in (*servers, *clients, *nodes):
        certificates.issue(cluster, identity, now=now)
    front_proxy = certificates.authority(pki, "front-proxy-ca", now=now)
    certificates.issue(front_proxy, Identity(FRONT_PROXY, FRONT_PROXY), now=now)
    certificates.signing_key(pki)
    for identity in (*clients, *nodes):
        write(kubeconfig_path(settings, identity.file), _kubeconfig(settings, identity.file), mode=0o600)


def kubeconfig_path(settings: Settings, identity: str) -> Path:
    """Return where a client's kubeconfig is."""
    return settings.state / f"{identity}.conf"


def _kubeconfig(settings: Settings, identity: str) -> str:
    pki = settings.state / "pki"
    name = settings.name

    def inline(file: str) -> str:
        return base64.b64encode((pki / file).read_bytes()).decode()

    server = f"https://{settings.addresses.node(1)}:{API_PORT}"
    user = {"client-certificate-data": inline(f"{identity}.crt"), "client-key-data": inline(f"{identity}.key")}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": inline("ca.crt")}}],
        "users": [{"name": identity, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": identity}}],
        "current-context": name,
    }
    return json.dumps(document, indent=1)
