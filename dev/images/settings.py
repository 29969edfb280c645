"""Where the build keeps its things and for which machine it builds. Read once, passed on."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images.errors import ImageError

ROOT: Final = Path(__file__).resolve().parents[2]
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}  # the kernel's name to OCI's
WHEEL_MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class Settings:
    """One machine's parameters."""

    caches: Path
    architecture: str
    engine: str  # "buildah", "docker", or empty for whichever is there

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, *, machine: str = "") -> "Settings":
        """Read SANDYARD_CACHE and SANDYARD_IMAGE_ENGINE."""
        machine = machine or platform.machine()
        if machine not in ARCHITECTURES:
            raise ImageError(f"no image is known for a machine of type {machine}.", fix="build on x86_64 or aarch64")
        caches = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return cls(
            caches=Path(environment.get("SANDYARD_CACHE") or Path(caches) / "sandyard").absolute(),
            architecture=ARCHITECTURES[machine],
            engine=environment.get("SANDYARD_IMAGE_ENGINE", ""),
        )

    @property
    def folder(self) -> Path:
        """All that is ours."""
        return self.caches / "images"

    @property
    def layout(self) -> Path:
        """The built images, in one OCI layout."""
        return self.folder / "layout"

    @property
    def record(self) -> Path:
        """What the other programs read: the references of the images last built."""
        return self.folder / "images.json"
