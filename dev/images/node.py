"""Hand the built images to the nodes of this machine's cluster, each only what it lacks.

A node's containerd is asked what it holds; the archive streamed to it leaves that out. Every image gets two names
there: by tag and by digest, so that a pod may name it either way and nothing is ever pulled.
"""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images.errors import ImageError
from images.layout import Layout, Stored
from images.settings import Settings

NAMESPACE: Final = "k8s.io"  # the kubelet's
ANSWER_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Receiver:
    """One node's container runtime."""

    ctr: Path
    socket: Path
    layout: Layout

    @property
    def name(self) -> str:
        """The node's name."""
        return self.socket.parent.name

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
        return [str(self.ctr), f"--address={self.socket}", f"--namespace={NAMESPACE}", *words]


def names(stored: Stored) -> tuple[str, str]:
    """Return an image's names on a node."""
    return stored.ref, stored.digest_ref


def receivers(settings: Settings) -> list[Receiver]:
    """Return the nodes that are up."""
    folder = settings.caches / "node"
    ctr, layout = folder / "bin" / "ctr", Layout(settings.layout)
    sockets = sorted((folder / settings.cluster).glob("node*/containerd.sock"))
    known = (Receiver(ctr, socket, layout) for socket in sockets)
    return [each for each in known if each.ask("version") is not None]
