"""Images for the node's own pods, made of static programs without any builder, and the import of other images.

A name's tag is a digest of the content, so an image that is there is the right one.
"""

import hashlib
import io
import json
import platform
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sandyard_node.errors import NodeError
from sandyard_node.files import write
from sandyard_node.settings import HERE, Node, Settings

BUSYBOX: Final = Path("/bin/busybox")
TAG_LENGTH: Final = 16
NOBODY: Final = 65534
DOWNLOADS: Final = "k8s.io"  # the containerd namespace that the kubelet uses


@dataclass(frozen=True, slots=True)
class Image:
    """An image of one layer: programs by path, links by path, and what it starts."""

    name: str
    programs: Mapping[str, Path]
    entrypoint: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()

    @property
    def reference(self) -> str:
        """Its name with a tag made of its content."""
        content = hashlib.sha256(repr((self.entrypoint, self.links)).encode())
        for path, program in sorted(self.programs.items()):
            content.update(path.encode() + program.read_bytes())
        return f"localhost/sandyard-node/{self.name}:{content.hexdigest()[:TAG_LENGTH]}"

    def archive(self) -> bytes:
        """Return it as `docker save` would write it."""
        layer = self._layer()
        config = {
            "architecture": _architecture(),
            "os": "linux",
            "config": {"Entrypoint": list(self.entrypoint), "Env": ["PATH=/bin"], "User": f"{NOBODY}:{NOBODY}"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        }
        manifest = [{"Config": "config.json", "RepoTags": [self.reference], "Layers": ["layer.tar"]}]
        output = io.BytesIO()
        with tarfile.open(fileobj=output, mode="w") as tar:
            _add(tar, "config.json", json.dumps(config).encode())
            _add(tar, "layer.tar", layer)
            _add(tar, "manifest.json", json.dumps(manifest).encode())
        return output.getvalue()

    def _layer(self) -> bytes:
        output = io.BytesIO()
        with tarfile.open(fileobj=output, mode="w") as tar:
            folder = tarfile.TarInfo("tmp")
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(folder)
            for path, program in sorted(self.programs.items()):
                _add(tar, path, program.read_bytes(), mode=0o755)
            for path, target in self.links:
                link = tarfile.TarInfo(path)
                link.type, link.linkname = tarfile.SYMTYPE, target
                tar.addfile(link)
        return output.getvalue()


@dataclass(frozen=True, slots=True)
class NodeImages:
    """The images a node needs before its first pod."""

    pause: Image
    busybox: Image
    coredns: Image
    storage: Image

    @classmethod
    def make(cls, settings: Settings) -> "NodeImages":
        """Describe them; compiles the pause program if it is not there."""
        return cls(
            pause=Image("pause", {"pause": _pause(settings)}, ("/pause",)),
            busybox=busybox(),
            coredns=Image("coredns", {"coredns": settings.bin / "coredns"}, ("/coredns",)),
            storage=Image(
                "storage",
                {"local-path-provisioner": settings.bin / "local-path-provisioner"},
                ("/local-path-provisioner",),
            ),
        )

    def all(self) -> tuple[Image, ...]:
        """Return all of them."""
        return (self.pause, self.busybox, self.coredns, self.storage)


def busybox() -> Image:
    """Describe the image with a shell, for canaries and for the helpers of storage."""
    if not BUSYBOX.exists():
        raise NodeError(f"{BUSYBOX} is not there.", fix="install busybox-static, or busybox linked statically")
    links = tuple((f"bin/{applet}", "busybox") for applet in _applets())
    return Image("busybox", {"bin/busybox": BUSYBOX}, ("/bin/sh",), links)


def load_missing(settings: Settings, node: Node, images: NodeImages) -> None:
    """Import into a node those of our images that it lacks."""
    have = set(ctr(settings, node, "images", "ls", "-q").split())
    for image in images.all():
        if image.reference not in have:
            path = settings.state / "image.tar"
            write(path, image.archive())
            load(settings, node, path)
            path.unlink()


def forget_containers(settings: Settings, node: Node) -> bool:
    """Remove every container from the records of a runtime that runs none; tell whether there were any."""
    containers = ctr(settings, node, "containers", "ls", "--quiet").split()
    sandboxes = [line.split()[0] for line in ctr(settings, node, "sandboxes", "ls").splitlines()[1:]]
    if containers:
        ctr(settings, node, "containers", "rm", *containers)
    if sandboxes:
        ctr(settings, node, "sandboxes", "rm", "--force", *sandboxes)
    return bool(containers or sandboxes)


def load(settings: Settings, node: Node, archive: Path) -> str:
    """Import an OCI or Docker archive into a node."""
    return ctr(settings, node, "images", "import", str(archive))


def ctr(settings: Settings, node: Node, *args: str) -> str:
    """Run containerd's client against a node."""
    command = [str(settings.bin / "ctr"), "-a", str(node.containerd_socket), "-n", DOWNLOADS, *args]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise NodeError(f"ctr {' '.join(args)}: {done.stderr.strip()}", fix="make cluster-status shows what runs")
    return done.stdout


def _pause(settings: Settings) -> Path:
    source = HERE / "pause.c"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:TAG_LENGTH]
    program = settings.cache / "programs" / f"pause-{digest}"
    if not program.exists():
        fresh = program.with_name(f".{program.name}")
        command = ["gcc", "-Os", "-s", "-static", "-Wall", "-Werror", "-o", str(fresh), str(source)]
        done = subprocess.run(command, text=True, capture_output=True, check=False)
        if done.returncode != 0:
            raise NodeError(f"compiling pause.c failed: {done.stderr.strip()}", fix="install gcc and libc6-dev")
        fresh.rename(program)
    return program


def _applets() -> list[str]:
    listed = subprocess.run([str(BUSYBOX), "--list"], text=True, capture_output=True, check=True)
    return [applet for applet in listed.stdout.split() if applet != "busybox"]


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]


def _add(tar: tarfile.TarFile, path: str, content: bytes, *, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
