"""Every component's configuration: what each daemon is started with, and the files it reads.

Chosen for a development node: two cores, no registry, a kernel that may have cgroup v1 only and a root that may lack
CAP_SYS_RESOURCE. Defaults of Kubernetes stay where they need not change, so what is measured here holds elsewhere.
"""

import json
from typing import Any, Final

from sandyard_node import host
from sandyard_node.credentials import API_PORT, FRONT_PROXY, kubeconfig_path
from sandyard_node.daemons import Daemon
from sandyard_node.files import write
from sandyard_node.settings import Node, Settings

PODS_PER_NODE: Final = 200  # its /24 has 253 addresses for them
PIDS_PER_POD: Final = 512
CONTROL_PLANE: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
ON_EACH_NODE: Final = ("containerd", "kubelet", "kube-proxy", "kube-router")
ETCD_CLIENTS: Final = "http://127.0.0.1:2379"
ETCD_PEERS: Final = "http://127.0.0.1:2380"


def containerd(settings: Settings, node: Node, *, pause: str) -> Daemon:
    """Return the container runtime: everything it keeps is below the node's folder."""
    folder = node.folder
    cni = {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "mtu": 1500,
                "ipam": {
                    "type": "host-local",
                    "dataDir": str(folder / "cni-addresses"),
                    "ranges": [[{"subnet": str(settings.addresses.pods_of(node.number))}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
    write(folder / "cni" / "10-pods.conflist", json.dumps(cni, indent=1))
    lacks_resource = str(not host.has_capability(host.CAP_SYS_RESOURCE)).lower()
    config = folder / "containerd.toml"
    write(
        config,
        f"""version = 3
root = "{folder}/containerd"
state = "{folder}/containerd-state"

[grpc]
  address = "{node.containerd_socket}"

[plugins.'io.containerd.internal.v1.opt']
  path = "{folder}/opt"

[plugins.'io.containerd.nri.v1.nri']
  disable = true  # its socket has one path on the machine

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{pause}"

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = {lacks_resource}
  netns_mounts_under_state_dir = true

  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{settings.bin}"]
    conf_dir = "{folder}/cni"

  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "{(settings.bin / "runc").resolve()}"
      Root = "{folder}/runc"
""",
    )
    return Daemon(node, "containerd", ("-c", str(config)), (config,))


def etcd(settings: Settings) -> Daemon:
    """Return the store. It need not survive a power loss, so it does not wait for the disk."""
    return Daemon(
        settings.node(1),
        "etcd",
        (
            f"--data-dir={settings.state}/etcd",
            f"--listen-client-urls={ETCD_CLIENTS}",
            f"--advertise-client-urls={ETCD_CLIENTS}",
            f"--listen-peer-urls={ETCD_PEERS}",
            f"--initial-advertise-peer-urls={ETCD_PEERS}",
            f"--initial-cluster=default={ETCD_PEERS}",
            "--unsafe-no-fsync",
        ),
    )


def api_server(settings: Settings) -> Daemon:
    """Return the API server, with request headers for aggregated ones."""
    pki = settings.state / "pki"
    files = [
        *("ca.crt", "apiserver.crt", "apiserver.key", "sa.pub", "sa.key", "front-proxy-ca.crt"),
        *("apiserver-to-kubelet.crt", "apiserver-to-kubelet.key", f"{FRONT_PROXY}.crt", f"{FRONT_PROXY}.key"),
    ]
    return Daemon(
        settings.node(1),
        "kube-apiserver",
        (
            f"--etcd-servers={ETCD_CLIENTS}",
            f"--secure-port={API_PORT}",
            f"--advertise-address={settings.addresses.node(1)}",
            f"--tls-cert-file={pki}/apiserver.crt",
            f"--tls-private-key-file={pki}/apiserver.key",
            f"--client-ca-file={pki}/ca.crt",
            f"--service-account-key-file={pki}/sa.pub",
            f"--service-account-signing-key-file={pki}/sa.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={settings.addresses.services}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            f"--kubelet-client-certificate={pki}/apiserver-to-kubelet.crt",
            f"--kubelet-client-key={pki}/apiserver-to-kubelet.key",
            f"--kubelet-certificate-authority={pki}/ca.crt",
            "--kubelet-preferred-address-types=InternalIP",
            f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt",
            f"--requestheader-allowed-names={FRONT_PROXY}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={pki}/{FRONT_PROXY}.crt",
            f"--proxy-client-key-file={pki}/{FRONT_PROXY}.key",
            "--enable-aggregator-routing=true",
            "--profiling=false",
        ),
        tuple(pki / file for file in files),
    )


def controller_manager(settings: Settings) -> Daemon:
    """Return the controllers."""
    pki = settings.state / "pki"
    return _client(
        settings,
        "kube-controller-manager",
        f"--root-ca-file={pki}/ca.crt",
        f"--service-account-private-key-file={pki}/sa.key",
        "--use-service-account-credentials",
        f"--cluster-cidr={settings.addresses.pods}",
    )


def scheduler(settings: Settings) -> Daemon:
    """Return the scheduler."""
    return _client(settings, "kube-scheduler")


def kubelet(settings: Settings, node: Node) -> Daemon:
    """Return the kubelet, whose pods live in the cluster's cgroup."""
    pki = settings.state / "pki"
    certificate, key = pki / f"kubelet-{node.name}.crt", pki / f"kubelet-{node.name}.key"
    config = node.folder / "kubelet.json"
    content = _kubelet(settings, node)
    content |= {"tlsCertFile": str(certificate), "tlsPrivateKeyFile": str(key)}
    write(config, json.dumps(content, indent=1))
    kubeconfig = kubeconfig_path(settings, f"kubelet-{node.name}")
    return Daemon(
        node,
        "kubelet",
        (
            f"--config={config}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={node.name}",
            f"--node-ip={settings.addresses.node(node.number)}",
            f"--root-dir={node.folder}/kubelet",
            f"--cert-dir={node.folder}/kubelet/pki",
        ),
        (config, kubeconfig, certificate, key, pki / "ca.crt"),
    )


def proxy(settings: Settings, node: Node) -> Daemon:
    """Return the Service proxy."""
    kubeconfig = kubeconfig_path(settings, "kube-proxy")
    config = node.folder / "kube-proxy.json"
    content = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": str(settings.addresses.pods),
        "hostnameOverride": node.name,
        "conntrack": {"maxPerCore": 0},  # the table's size is the machine's, not the namespace's
    }
    write(config, json.dumps(content, indent=1))
    return Daemon(node, "kube-proxy", (f"--config={config}",), (config, kubeconfig))


def policies(settings: Settings, node: Node) -> Daemon:
    """Return what enforces NetworkPolicy: kube-router's firewall alone. It ends at once before its node is known."""
    kubeconfig = kubeconfig_path(settings, "kube-router")
    return Daemon(
        node,
        "kube-router",
        (
            "--run-firewall=true",
            "--run-router=false",
            "--run-service-proxy=false",
            "--run-loadbalancer=false",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={node.name}",
            f"--service-cluster-ip-range={settings.addresses.services}",
        ),
        (kubeconfig,),
    )


def control_plane(settings: Settings) -> tuple[Daemon, ...]:
    """Return what runs on the first node only, in the order of its start."""
    return (etcd(settings), api_server(settings), controller_manager(settings), scheduler(settings))


def _client(settings: Settings, program: str, *arguments: str) -> Daemon:
    kubeconfig = kubeconfig_path(settings, program)
    return Daemon(
        settings.node(1),
        program,
        (
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            *arguments,
        ),
        (kubeconfig, *(settings.state / "pki" / file for file in ("ca.crt", "sa.key"))),
    )


def _kubelet(settings: Settings, node: Node) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(settings.state / "pki" / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{settings.cgroup}/{node.name}",
        "podLogsDir": str(node.folder / "pod-logs"),
        "volumePluginDir": str(node.folder / "volume-plugins"),
        "failCgroupV1": False,  # refused by default since 1.35, and all that some machines have
        "failSwapOn": False,
        "resolvConf": "",
        "clusterDNS": [str(settings.addresses.dns_service)],
        "clusterDomain": "cluster.local",
        "maxPods": PODS_PER_NODE,
        "podPidsLimit": PIDS_PER_POD,
        "serializeImagePulls": False,
        # Without CAP_SYS_RESOURCE it may not lower its own oom_score_adj; the gate lets it go on.
        "featureGates": {"KubeletInUserNamespace": not host.has_capability(host.CAP_SYS_RESOURCE)},
        "imageGCHighThresholdPercent": 100,  # an image that is collected could not be pulled again
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
        },
    }
