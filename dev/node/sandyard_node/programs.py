"""Build the node's programs from the Go modules in ``go/``, each group once per content of its module.

A group's go.mod names its programs (``tool``) and pins every dependency, go.sum their contents. A build lands under
a name made of all its inputs, by one rename: what is there is whole, and what is there need not be built.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sandyard_node.errors import NodeError
from sandyard_node.progress import Progress
from sandyard_node.settings import HERE, Settings

TAIL_LINES: Final = 20
DIGEST_LENGTH: Final = 12
BUILDING: Final = ".building-"
VERSION_PACKAGE: Final = "k8s.io/component-base/version"


@dataclass(frozen=True, slots=True)
class Group:
    """Programs built together from one Go module."""

    name: str
    ldflags: str = "-s -w"
    tags: str = ""
    cgo: bool = False
    rename: Mapping[str, str] = field(default_factory=dict)

    @property
    def module(self) -> Path:
        """Where its go.mod and go.sum are."""
        return HERE / "go" / self.name


def groups(settings: Settings) -> tuple[Group, ...]:
    """Return all groups that a node of this Kubernetes needs."""
    version = kubernetes_version(settings)
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamped = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    stamps = " ".join(f"-X {VERSION_PACKAGE}.{key}={value}" for key, value in stamped.items())
    return (
        Group("containerd"),
        Group("runc", tags="seccomp", cgo=True),
        Group("cni"),
        Group("etcd", rename={"server": "etcd"}),
        Group(settings.kubernetes_module.name, ldflags=f"-s -w {stamps}"),
        Group("coredns"),
        Group("kube-router"),
        Group("local-path-provisioner"),
        Group("helm"),
    )


def kubernetes_version(settings: Settings) -> str:
    """Read which Kubernetes the module pins, as v1.37.2."""
    found = re.search(r"k8s\.io/kubernetes (v1\.\S+)", (settings.kubernetes_module / "go.mod").read_text())
    if not found:
        raise NodeError(f"{settings.kubernetes_module}/go.mod requires no k8s.io/kubernetes.")
    return found[1]


def build_all(settings: Settings, progress: Progress) -> None:
    """Build what is missing and link every program into one folder."""
    store = settings.cache / "programs"
    store.mkdir(parents=True, exist_ok=True)
    for leftover in store.glob(f"{BUILDING}*"):
        shutil.rmtree(leftover, ignore_errors=True)  # a compiler that outlived this tool may still write there
    settings.bin.mkdir(exist_ok=True)
    version = go_version()
    for group in groups(settings):
        built = store / f"{group.name}-{digest(group, version)}"
        if not built.is_dir():
            with progress.step(f"build {group.name}"):
                build(group, built, progress)
        for program in built.iterdir():
            _link(settings.bin / program.name, program)
        for older in store.glob(f"{group.name}-{'[0-9a-f]' * DIGEST_LENGTH}"):
            if older != built:
                shutil.rmtree(older)


def digest(group: Group, go: str) -> str:
    """Return a digest of all that a build depends on."""
    parts = [go, group.ldflags, group.tags, str(group.cgo), repr(sorted(group.rename.items()))]
    parts += [(group.module / name).read_text() for name in ("go.mod", "go.sum")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:DIGEST_LENGTH]


def build(group: Group, target: Path, progress: Progress) -> None:
    """Build one group into its folder, all or nothing."""
    with tempfile.TemporaryDirectory(prefix=BUILDING, dir=target.parent) as name:
        output = Path(name) / "out"
        command = ["go", "build", "-v", "-mod=readonly", "-trimpath", "-ldflags", group.ldflags]
        command += ["-tags", group.tags] if group.tags else []
        command += ["-o", f"{output}/", "tool"]
        environment = {**os.environ, "CGO_ENABLED": str(int(group.cgo)), "GOFLAGS": "-buildvcs=false", "GOWORK": "off"}
        lines = []
        with subprocess.Popen(command, cwd=group.module, env=environment, text=True, stderr=subprocess.PIPE) as process:
            for line in _lines(process):
                lines.append(line)
                progress.note(f"{len(lines)} packages, {line}")
        if process.returncode != 0:
            tail = "\n".join(lines[-TAIL_LINES:])
            raise NodeError(
                f"{tail}\nbuilding {group.name} ended with {process.returncode}.",
                fix="read the lines above; Go needs its module proxy, or a filled module cache",
            )
        for old, new in group.rename.items():
            (output / old).rename(output / new)
        output.rename(target)


def go_version() -> str:
    """Return the Go release in use; refuse none or one that is too old."""
    try:
        done = subprocess.run(
            ["go", "env", "GOVERSION"], cwd=HERE / "go" / "containerd", text=True, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise NodeError("Go is not installed (or not on PATH).", fix="install Go 1.26 or newer") from error
    if done.returncode != 0:
        raise NodeError(f"Go cannot be used: {done.stderr.strip()}", fix="install Go 1.26 or newer")
    return done.stdout.strip()


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    if process.stderr:
        yield from (line.strip() for line in process.stderr)


def _link(link: Path, target: Path) -> None:
    if link.is_symlink() and link.readlink() == target:
        return
    fresh = link.with_name(f".{link.name}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.rename(link)
