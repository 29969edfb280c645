"""Hand the built images to the nodes of this machine's cluster, each only what it lacks.

A node's containerd is asked what it holds; the archive streamed to it leaves that out. Every image gets two names
there: by tag and by digest, so that a pod may name it either way and nothing is ever pulled.
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from images.errors import ImageError
from images.layout import Layout, Stored
from images.settings import Settings

NAMESPACE: Final = "k8s.io"


def sockets(settings: Settings) -> tuple[Path, ...]:
    """Return where the nodes' container runtimes listen; none when no cluster is up."""
    found = sorted((settings.caches / "node").glob("*/node*/containerd.sock"))
    return tuple(path for path in found if _ask(settings, path, "version") is not None)


def load(settings: Settings, socket: Path, images: Iterable[Stored]) -> int:
    """Import what a node lacks; return how many images that were."""
    layout = Layout(settings.layout)
    named = _names(settings, socket)
    held = set((_ask(settings, socket, "content", "ls", "--quiet") or "").split())
    loaded = 0
    for stored in images:
        names = (stored.ref, stored.digest_ref)
        if all(named.get(name) == stored.digest for name in names):
            continue
        _import(settings, socket, layout, stored, names=names, held=held)
        held |= set(stored.blobs)
        loaded += 1
    return loaded


def _names(settings: Settings, socket: Path) -> dict[str, str]:
    """Return the digest of each image a node knows by name."""
    lines = (_ask(settings, socket, "images", "ls") or "").splitlines()[1:]
    words = (line.split() for line in lines)
    return {parts[0]: parts[2] for parts in words if len(parts) > 2}  # noqa: PLR2004 - name, type, digest


def _import(
    settings: Settings, socket: Path, layout: Layout, stored: Stored, *, names: Iterable[str], held: set[str]
) -> None:
    command = _ctr(settings, socket, "images", "import", "--local", "-")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as importing:
        if importing.stdin and importing.stderr:
            try:
                layout.write_archive(stored, importing.stdin, names=names, without=held)
                importing.stdin.close()
            except BrokenPipeError:
                pass  # what it says on its way out tells why
            said = importing.stderr.read().decode(errors="replace").strip()
    if importing.returncode != 0:
        raise ImageError(
            f"{said}\n{stored.ref} could not be loaded into the node at {socket}.",
            fix="is the cluster up? make cluster-status",
        )


def _ask(settings: Settings, socket: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(_ctr(settings, socket, *words), capture_output=True, text=True, check=False, timeout=30)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _ctr(settings: Settings, socket: Path, *words: str) -> list[str]:
    ctr = settings.caches / "node" / "bin" / "ctr"
    return [str(ctr), f"--address={socket}", f"--namespace={NAMESPACE}", *words]
