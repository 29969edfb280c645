"""What each image is made of. Nothing here is computed but from the checkout's own files."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images.settings import ROOT

REPOSITORY: Final = "localhost/sandyard"  # a registry's name takes its place when images are pushed


@dataclass(frozen=True, slots=True)
class Piece:
    """A file or folder of the checkout, and where it goes in the build context."""

    source: str
    target: str
    without: tuple[str, ...] = ()  # names below a folder that are left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image: a folder in images/ with its Dockerfile, its locks, and pieces of the checkout."""

    name: str
    locks: tuple[str, ...]
    pieces: tuple[Piece, ...]

    @property
    def folder(self) -> Path:
        """Where its Dockerfile is."""
        return ROOT / "images" / self.name


API: Final = "api/src/sandyard_api"
# Below code/ is an image's tree: one copy brings it in.
AGENT_SITE: Final = "code/opt/sandyard/agent/lib/python3.13/site-packages"
OPERATOR_SITE: Final = "code/opt/sandyard/operator/lib/python3.13/site-packages"
RUNNER: Final = "code/opt/sandyard/runtime"
RUNTIME: Final = "runtime/src/sandyard_runtime"

IMAGES: Final = (
    Image(
        name="runtime",
        locks=("runtime", "agent"),
        pieces=(
            Piece(API, f"{AGENT_SITE}/sandyard_api"),
            Piece(RUNTIME, f"{AGENT_SITE}/sandyard_runtime"),
            Piece(RUNTIME, f"{RUNNER}/sandyard_runtime", without=("agent",)),
            Piece("runtime/runner", RUNNER),
        ),
    ),
    Image(
        name="operator",
        locks=("operator",),
        pieces=(
            Piece(API, f"{OPERATOR_SITE}/sandyard_api"),
            Piece("operator/src/sandyard_operator", f"{OPERATOR_SITE}/sandyard_operator"),
        ),
    ),
    Image(
        name="index",
        locks=("index", "index-packages"),
        pieces=(),
    ),
)


def version() -> str:
    """Return the distribution's version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["version"])
