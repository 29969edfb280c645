"""What each image is made of. Nothing here is computed but from the checkout's own files."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images.settings import ROOT

REPOSITORY: Final = "localhost/sandyard"  # a registry's name takes its place when images are pushed
LICENSE: Final = "MIT"


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
    description: str
    locks: tuple[str, ...]
    pieces: tuple[Piece, ...]

    @property
    def folder(self) -> Path:
        """Where its Dockerfile is."""
        return ROOT / "images" / self.name


API: Final = "api/src/sandyard_api"
RUNTIME: Final = "runtime/src/sandyard_runtime"

IMAGES: Final = (
    Image(
        name="runtime",
        description="A Sandyard pod: the agent, and Python 3.13 with numpy, pandas, pyarrow, duckdb and matplotlib",
        locks=("runtime", "agent"),
        pieces=(
            Piece(API, "code/agent/sandyard_api"),
            Piece(RUNTIME, "code/agent/sandyard_runtime"),
            Piece(RUNTIME, "code/runtime/sandyard_runtime", without=("agent",)),
            Piece("runtime/runner", "code/runtime"),
        ),
    ),
    Image(
        name="operator",
        description="The Sandyard operator",
        locks=("operator",),
        pieces=(
            Piece(API, "code/sandyard_api"),
            Piece("operator/src/sandyard_operator", "code/sandyard_operator"),
        ),
    ),
    Image(
        name="index",
        description="A private package index for trying and testing Sandyard",
        locks=("index", "index-packages"),
        pieces=(),
    ),
)


def version() -> str:
    """Return the distribution's version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["version"])
