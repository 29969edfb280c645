"""Hand the built images to the nodes of this machine's cluster, each only what it lacks.

dev/node says which nodes there are. A node's containerd is asked what it holds; the archive streamed to it leaves
that out. Every image gets two names there: by tag and by digest, so that a pod may name it either way and nothing
is ever pulled.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from images.errors import ImageError
from images.layout import Layout, Stored
from images.settings import ROOT, Settings

NAMESPACE: Final = "k8s.io"  # the kubelet's
ANSWER_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Receiver:
    """One node's container runtime."""

    name: str
    ctr: tuple[str, ...]  # how its client is called
    layout: Layout

    def missing(self, images: Iterable[Stored]) -> list[Stored]:
        """Return the images that the node does not know by both names."""
        lines = (self.ask("images", "ls") or "").splitlines()[1:]
        named = {words[0]: words[2] for line in lines if len(words := line.split()) > 2}  # noqa: PLR2004 - name, type, digest
        return [each for each in images if any(named.get(name) != each.digest for name in names(each))]

    def load(self, images: Iterable[Stored]) -> None:
        """Import images, each without what the node holds already."""
        held = set((self.ask("content", "ls", "--quiet") or "").split())
        for stored in images:
            self._import(stored, held)
            held |= set(stored.blobs)

    def ask(self, *words: str) -> str | None:
        """Return what ctr prints, or None when the node does not answer."""
        try:
            done = subprocess.run(
                self._command(*words), capture_output=True, text=True, check=False, timeout=ANSWER_SECONDS
            )
        except (FileNotFoundError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

    def _import(self, stored: Stored, held: set[str]) -> None:
        command = self._command("images", "import", "--local", "-")
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as importing:
            if importing.stdin and importing.stderr:
                try:
                    self.layout.write_archive(stored, importing.stdin, names=names(stored), without=held)
                    importing.stdin.close()
                except BrokenPipeError:
                    pass  # what it says on its way out tells why
                said = importing.stderr.read().decode(errors="replace").strip()
        if importing.returncode != 0:
            raise ImageError(f"{said}\n{self.name} did not take {stored.ref}.", fix="make cluster-status")

    def _command(self, *words: str) -> list[str]:
        return [*self.ctr, f"--namespace={NAMESPACE}", *words]


def names(stored: Stored) -> tuple[str, str]:
    """Return an image's names on a node."""
    return stored.ref, stored.digest_ref


def receivers(settings: Settings) -> list[Receiver]:
    """Return the nodes of the cluster that is up; none where there is none."""
    command = [sys.executable, "-m", "sandyard_node", "status"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "dev" / "node")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    try:
        status = json.loads(done.stdout)
    except ValueError:
        return []
    if not status["ready"]:
        return []
    layout = Layout(settings.layout)
    return [Receiver(each["name"], client(status["provider"], each, settings), layout) for each in status["nodes"]]


def client(provider: str, node: Mapping[str, Any], settings: Settings) -> tuple[str, ...]:
    """Return how a node's ctr is called: from here, or in the container that is a node of kind."""
    if provider == "kind":
        return ("docker", "exec", "--interactive", node["name"], "ctr")
    return (str(settings.caches / "node" / "bin" / "ctr"), f"--address={node['containerd']}")
