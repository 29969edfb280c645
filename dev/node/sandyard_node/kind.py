"""The cluster where Docker and kind work: kind with ``kind-config.yaml``.

kind's own network plugin enforces NetworkPolicy since v0.24 and its StorageClass is there from the start, so nothing
else is installed. The same canary as on our own node has the last word on both claims.
"""

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sandyard_node import canary
from sandyard_node.errors import NodeError
from sandyard_node.files import write
from sandyard_node.images import busybox
from sandyard_node.kubectl import Kubectl
from sandyard_node.progress import Progress
from sandyard_node.settings import HERE, Settings

OLDEST: Final = (0, 24)  # the first whose network plugin enforces NetworkPolicy
CONFIG: Final = HERE.parents[1] / "kind-config.yaml"
PROBE_SECONDS: Final = 15
WORKER: Final = "- role: worker\n"


@dataclass(frozen=True, slots=True)
class KindCluster:
    """One cluster of kind."""

    settings: Settings
    progress: Progress

    @property
    def kubectl(self) -> Kubectl:
        """Its administrator's kubectl."""
        return Kubectl("kubectl", self.settings.kubeconfig)

    def up(self) -> None:
        """Create it unless it is there, and prove that it holds."""
        problem = why_not()
        if problem:
            raise NodeError(problem, fix="PROVIDER=node make cluster, on Linux as root, needs neither Docker nor kind")
        self.settings.state.mkdir(parents=True, exist_ok=True)
        if self.settings.name not in _kind("get", "clusters").split():
            config = self.settings.state / "kind-config.yaml"
            write(config, CONFIG.read_text() + WORKER * (self.settings.node_count - 1))
            with self.progress.step("create the kind cluster"):
                _kind("create", "cluster", *self._named, f"--config={config}", "--wait=180s", *self._kubeconfig)
        _kind("export", "kubeconfig", *self._named, *self._kubeconfig)
        image = busybox()
        with self.progress.step("prove NetworkPolicy and user namespaces with canary pods"):
            with tempfile.TemporaryDirectory() as folder:
                archive = Path(folder) / "canary.tar"
                archive.write_bytes(image.archive())
                self.load_image(archive)
            canary.prove(self.kubectl, image=image.reference)

    def down(self, *, purge: bool = False) -> None:
        """Delete it; kind keeps nothing, so purge asks for nothing more."""
        del purge
        _kind("delete", "cluster", *self._named, *self._kubeconfig)

    def status(self) -> dict[str, Any]:
        """Return what runs, for people and programs."""
        nodes: list[dict[str, Any]] = []
        if self.settings.name in _kind("get", "clusters").split():
            nodes = json.loads(self.kubectl("get", "nodes", "-o", "json"))["items"]
        return {
            "provider": "kind",
            "ready": bool(nodes) and all(_is_ready(node) for node in nodes),
            "kubernetes": nodes[0]["status"]["nodeInfo"]["kubeletVersion"] if nodes else None,
            "kubeconfig": str(self.settings.kubeconfig),
            "nodes": [{"name": node["metadata"]["name"]} for node in nodes],
        }

    def load_image(self, archive: Path) -> str:
        """Import an archive into every node."""
        return _kind("load", "image-archive", *self._named, str(archive))

    @property
    def _named(self) -> tuple[str, str]:
        return ("--name", self.settings.name)

    @property
    def _kubeconfig(self) -> tuple[str, str]:
        return ("--kubeconfig", str(self.settings.kubeconfig))


def why_not() -> str:
    """Return why kind cannot be used here; empty if it can."""
    for program in ("docker", "kind", "kubectl"):
        if not shutil.which(program):
            return f"{program} is not installed."
    version = re.search(r"v(\d+)\.(\d+)", _kind("version"))
    if not version or (int(version[1]), int(version[2])) < OLDEST:
        return f"kind is older than v{'.'.join(map(str, OLDEST))}, whose network enforces no NetworkPolicy."
    try:
        daemon = subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return "the Docker daemon does not answer."
    return "" if daemon.returncode == 0 else "the Docker daemon cannot be reached."


def _is_ready(node: dict[str, Any]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])


def _kind(*args: str) -> str:
    try:
        done = subprocess.run(["kind", *args], text=True, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise NodeError("kind is not installed.", fix="install kind, or set PROVIDER=node") from error
    if done.returncode != 0:
        raise NodeError(f"kind {' '.join(args)}: {done.stderr.strip()}", fix="is Docker running? docker info")
    return done.stdout
