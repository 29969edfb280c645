"""Bring our own cluster up and down, and say how it is.

``up`` is a list of steps that each look first and do only what is missing; so a second run, a run after an abort at
any instant and a run with other settings are all the same program. State that a reboot or ``down`` makes worthless is
wiped; built programs and imported images stay.
"""

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any, Final

from sandyard_node import canary, certificates, components, credentials, host, images, leftovers, network, programs
from sandyard_node.daemons import Daemon, Daemons
from sandyard_node.errors import NodeError
from sandyard_node.files import write
from sandyard_node.images import NodeImages
from sandyard_node.kubectl import Kubectl, wait_until
from sandyard_node.progress import Progress
from sandyard_node.settings import HERE, MAX_NODES, Node, Settings

START_SECONDS: Final = 120  # a loaded two-core machine needs a minute at worst
ADDONS: Final = (("kube-system", "coredns"), ("local-path-storage", "local-path-provisioner"))


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster of our own nodes."""

    settings: Settings
    progress: Progress
    daemons: Daemons

    @classmethod
    def of(cls, settings: Settings, progress: Progress) -> "Cluster":
        """Return the cluster that the settings describe; nodes that run count also when fewer are asked for."""
        up = [number for number in range(1, MAX_NODES + 1) if network.is_up(settings.node(number))]
        settings = replace(settings, node_count=max(settings.node_count, *up, 1))
        return cls(settings, progress, Daemons.of(settings))

    @property
    def kubectl(self) -> Kubectl:
        """Its administrator's kubectl."""
        return Kubectl(self.settings.bin / "kubectl", self.settings.kubeconfig)

    def up(self) -> None:
        """Make everything run that does not, and prove that it holds."""
        with self._alone():
            host.require(self.progress)
            programs.build_all(self.settings, self.progress)
            self._forget_an_earlier_boot()
            with self.progress.step("network, certificates, images"):
                host.bind(self.settings.state, self.settings.mount)
                network.up(self.settings)
                credentials.make(self.settings, now=certificates.utc_now())
                own_images = NodeImages.make(self.settings)
            self._control_plane()
            for node in self.settings.nodes:
                self._node(node, own_images)
            self._addons(own_images)
            self._policies()
            self._prove(own_images)

    def down(self, *, purge: bool = False) -> None:
        """Stop everything, take down mounts and network; with purge, forget images and certificates too."""
        with self._alone():
            with self.progress.step("stop all programs and pods"):
                self._stop()
            network.down(self.settings)
            if purge:
                shutil.rmtree(self.settings.state, ignore_errors=True)

    def status(self) -> dict[str, Any]:
        """Return what runs, for people and programs."""
        wanted = self._all_daemons()
        running = {daemon.name: self.daemons.pid(daemon) for daemon in wanted}
        return {
            "provider": "node",
            "ready": all(running.values()) and self._proven() and self._answers(),
            "kubernetes": programs.kubernetes_version(self.settings),
            "kubeconfig": str(self.settings.kubeconfig),
            "host": str(self.settings.addresses.host),
            "pods": str(self.settings.addresses.pods),
            "services": str(self.settings.addresses.services),
            "nodes": [
                {
                    "name": node.name,
                    "address": str(self.settings.addresses.node(node.number)),
                    "networkNamespace": node.namespace,
                    "containerd": str(node.containerd_socket),
                }
                for node in self.settings.nodes
            ],
            "daemons": running,
            "logs": str(self.settings.state / "log"),
        }

    def load_image(self, archive: Path) -> str:
        """Import an archive into every node that runs."""
        if not archive.is_file():
            raise NodeError(f"{archive} is not there.", fix="give an OCI or Docker archive")
        nodes = [node for node in self.settings.nodes if network.is_up(node)]
        if not nodes:
            raise NodeError("no node runs.", fix="make cluster")
        return "".join(images.load(self.settings, node, archive.absolute()) for node in nodes)

    @property
    def _proof_path(self) -> Path:
        return self.settings.state / "proof"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one run at a time; the lock ends with the process, however that ends."""
        self.settings.state.mkdir(parents=True, exist_ok=True)
        with (self.settings.cache / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.progress.say("another run of this tool is under way; waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _forget_an_earlier_boot(self) -> None:
        boot = self.settings.state / "boot"
        if not boot.exists() or boot.read_text() != host.boot_id():
            self._stop()
        write(boot, host.boot_id())

    def _stop(self) -> None:
        leftovers.forget_shims(self.settings)
        self.daemons.cgroup.kill()
        leftovers.wipe(self.settings)

    def _control_plane(self) -> None:
        etcd, api_server, *clients = components.control_plane(self.settings)
        with self.progress.step("start the control plane"):
            self.daemons.ensure(etcd)
            self.daemons.ensure(api_server)
            self._wait("the API server answers", self._answers, api_server)
            for client in clients:
                self.daemons.ensure(client)

    def _node(self, node: Node, own_images: NodeImages) -> None:
        containerd = components.containerd(self.settings, node, pause=own_images.pause.reference)
        kubelet = components.kubelet(self.settings, node)
        self.daemons.cgroup.child(node.name).make()
        with self.progress.step(f"start {node.name}"):
            self._runtime(node, containerd)
            images.load_missing(self.settings, node, own_images)
            self.daemons.ensure(kubelet)
            self.daemons.ensure(components.proxy(self.settings, node))
            ready = ["wait", "--for=condition=Ready", f"node/{node.name}", "--timeout=5s"]
            self._wait(f"{node.name} is ready", lambda: self.kubectl.succeeds(*ready), kubelet)

    def _runtime(self, node: Node, containerd: Daemon) -> None:
        """Start the container runtime; one that outlived its pods must not show them to the kubelet."""
        fresh = not (self.settings.state / node.name / "containerd-state").exists()
        while self.daemons.ensure(containerd):
            self._wait("containerd answers", lambda: self._runtime_answers(node), containerd)
            if fresh and images.forget_containers(self.settings, node):
                self.daemons.stop([containerd])  # it read its records when it started

    def _addons(self, own_images: NodeImages) -> None:
        values = {
            "dns_service": self.settings.addresses.dns_service,
            "coredns_image": own_images.coredns.reference,
            "storage_image": own_images.storage.reference,
            "busybox_image": own_images.busybox.reference,
            "volumes": self.settings.mount / "volumes",
        }
        with self.progress.step("apply DNS and storage"):
            for path in sorted((HERE / "manifests").glob("*.yaml")):
                self.kubectl.apply(Template(path.read_text()).substitute(values))

    def _policies(self) -> None:
        with self.progress.step("start the enforcement of NetworkPolicy"):
            for node in self.settings.nodes:
                self.daemons.ensure(components.policies(self.settings, node))

    def _prove(self, own_images: NodeImages) -> None:
        if self._proven():
            return
        with self.progress.step("prove NetworkPolicy and user namespaces with canary pods"):
            canary.prove(self.kubectl, image=own_images.busybox.reference)
        with self.progress.step("wait for DNS and storage"):
            for namespace, name in ADDONS:
                self._wait_available(namespace, name)
        for daemon in self._all_daemons():
            self.daemons.require(daemon)
        write(self._proof_path, self._running_digest())

    def _proven(self) -> bool:
        return self._proof_path.exists() and self._proof_path.read_text() == self._running_digest()

    def _wait_available(self, namespace: str, name: str) -> None:
        rollout = ("-n", namespace, "rollout", "status", f"deployment/{name}", "--timeout=5s")
        wait_until(
            f"{name} is available",
            lambda: self.kubectl.succeeds(*rollout),
            seconds=START_SECONDS,
            fix=f"kubectl -n {namespace} describe pods",
        )

    def _running_digest(self) -> str:
        """Return what changes when any daemon is another process than before."""
        pids = [self.daemons.pid(daemon) for daemon in self._all_daemons()]
        return hashlib.sha256(json.dumps(pids).encode()).hexdigest()

    def _all_daemons(self) -> list[Daemon]:
        daemons = [Daemon(self.settings.node(1), name, ()) for name in components.CONTROL_PLANE]
        return daemons + [Daemon(node, name, ()) for node in self.settings.nodes for name in components.ON_EACH_NODE]

    def _answers(self) -> bool:
        return self.settings.kubeconfig.exists() and self.kubectl.succeeds("get", "--raw", "/readyz")

    def _runtime_answers(self, node: Node) -> bool:
        try:
            images.ctr(self.settings, node, "version")
        except NodeError:
            return False
        return True

    def _wait(self, what: str, accept: Callable[[], bool], daemon: Daemon) -> None:
        def accepted() -> bool:
            if accept():
                return True
            self.daemons.require(daemon)
            return False

        wait_until(what, accepted, seconds=START_SECONDS, fix=f"read {self.daemons.log(daemon)}")
