"""The two programs that can build an image from a Dockerfile: buildah, which needs no daemon, and Docker.

Both build from a laid out context and leave the image in the OCI layout under its reference.
"""

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from images import base
from images.errors import ImageError
from images.layout import Layout
from images.programs import answers, require, run
from images.settings import Settings


class Engine(Protocol):
    """What a build needs of an engine."""

    name: str

    def has(self, ref: str) -> bool:
        """Tell whether the engine holds an image."""

    def build_base(self, ref: str, folder: Path, *, log: Path) -> None:
        """Make the root that all images start from; ``folder`` is for its context."""

    def build(self, ref: str, folder: Path, *, arguments: Mapping[str, str], log: Path) -> None:
        """Build a context and store the image in the layout."""

    def keep_only(self, refs: Sequence[str], *, log: Path) -> None:
        """Remove the images that these took the place of."""

    def push(self, ref: str, target: str, *, log: Path) -> str:
        """Copy an image to a registry and return its digest there."""


class Buildah:
    """Buildah with a store of its own in the cache, and without a container runtime."""

    name = "buildah"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        store = settings.folder / "storage"
        self._command: Final = ("buildah", f"--root={store}", f"--runroot={settings.folder / 'run'}")
        self._storing = threading.Lock()  # two writers of a layout lose each other's references

    def has(self, ref: str) -> bool:
        """Tell whether the store holds an image."""
        return answers([*self._command, "inspect", "--type=image", "--format={{.FromImageID}}", ref])

    def build_base(self, ref: str, folder: Path, *, log: Path) -> None:
        """Import a root made by mmdebstrap."""
        base.bootstrap(self._settings, folder, log=log)
        self._build(ref, folder, (), log=log)
        shutil.rmtree(folder)

    def build(self, ref: str, folder: Path, *, arguments: Mapping[str, str], log: Path) -> None:
        """Build with layers that are found again, and file times that are always the same."""
        options = [f"--build-arg={key}={value}" for key, value in arguments.items()]
        self._build(ref, folder, options, log=log)
        with self._storing:
            run([*self._command, "push", "--quiet", ref, f"oci:{self._settings.layout}:{ref}"], log=log)
            Layout(self._settings.layout).uncompress(ref)

    def keep_only(self, refs: Sequence[str], *, log: Path) -> None:
        """Remove our other images, with the layers that only they had."""
        others = _superseded(refs, [*self._command, "images", "--format={{.Name}}:{{.Tag}}"])
        if others:
            run([*self._command, "rmi", *others], log=log)

    def push(self, ref: str, target: str, *, log: Path) -> str:
        """Push with buildah; credentials are those of ``buildah login``."""
        digest = log.with_suffix(".digest")
        verify = [] if _is_secure(target) else ["--tls-verify=false"]
        run([*self._command, "push", *verify, f"--digestfile={digest}", ref, f"docker://{target}"], log=log)
        return digest.read_text().strip()

    def _build(self, ref: str, folder: Path, options: list[str] | tuple[()], *, log: Path) -> None:
        command = [*self._command, "build", "--isolation=chroot", "--layers", "--timestamp=0", "--pull-never"]
        run([*command, "--identity-label=false", *options, f"--tag={ref}", folder], log=log)


class Docker:
    """Docker with BuildKit."""

    name = "docker"

    def __init__(self, settings: Settings) -> None:
        self._layout = Layout(settings.layout)
        self._storing = threading.Lock()

    def has(self, ref: str) -> bool:
        """Tell whether the daemon holds an image."""
        return answers(["docker", "image", "inspect", ref])

    def build_base(self, ref: str, folder: Path, *, log: Path) -> None:
        """Build the base from Debian's public image."""
        del folder  # the context is in the checkout
        fix = "where Docker reaches no registry: SANDYARD_IMAGE_ENGINE=buildah make images"
        run(["docker", "build", f"--tag={ref}", base.FOLDER], log=log, env=_buildkit(), fix=fix)

    def build(self, ref: str, folder: Path, *, arguments: Mapping[str, str], log: Path) -> None:
        """Build, and take the result over into the layout."""
        options = [f"--build-arg={key}={value}" for key, value in arguments.items()]
        run(
            ["docker", "build", "--network=none", *options, f"--tag={ref}", folder],
            log=log,
            env=_buildkit(),
        )
        with self._storing, subprocess.Popen(["docker", "save", ref], stdout=subprocess.PIPE) as saving:
            if saving.stdout:
                self._layout.add_archive(ref, saving.stdout)

    def keep_only(self, refs: Sequence[str], *, log: Path) -> None:
        """Remove our other images."""
        others = _superseded(refs, ["docker", "images", "--format={{.Repository}}:{{.Tag}}"])
        if others:
            run(["docker", "rmi", *others], log=log)

    def push(self, ref: str, target: str, *, log: Path) -> str:
        """Push with Docker; credentials are those of ``docker login``."""
        run(["docker", "tag", ref, target], log=log)
        run(["docker", "push", "--quiet", target], log=log)
        inspect = ["docker", "image", "inspect", '--format={{join .RepoDigests "\\n"}}', target]
        digests = subprocess.run(inspect, capture_output=True, text=True, check=True).stdout.split()
        repository = target.rpartition(":")[0]
        return next(each for each in digests if each.startswith(f"{repository}@")).rpartition("@")[2]


def choose(settings: Settings, *, log: Path) -> Engine:
    """Return the engine asked for, else Docker where its daemon answers, else buildah."""
    match settings.engine:
        case "docker":
            return Docker(settings)
        case "" if answers(["docker", "info", "--format={{.ServerVersion}}"]):
            return Docker(settings)
        case "" | "buildah":
            require("buildah", log=log)
            return Buildah(settings)
        case other:
            raise ImageError(f"SANDYARD_IMAGE_ENGINE: {other!r} is not known.", fix="set it to buildah or docker")


def _superseded(refs: Sequence[str], command: Sequence[str]) -> list[str]:
    """Return, of the references that a command lists, those of the same names as ``refs`` and other tags."""
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    names = {ref.rpartition(":")[0] for ref in refs}
    return [each for each in listed if each.rpartition(":")[0] in names and each not in refs]


def _is_secure(target: str) -> bool:
    """Tell whether TLS is to be proven; a registry on this machine is reached without, as Docker does."""
    return target.partition("/")[0].rpartition(":")[0] not in {"localhost", "127.0.0.1"}


def _buildkit() -> dict[str, str]:
    return {**os.environ, "DOCKER_BUILDKIT": "1", "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
