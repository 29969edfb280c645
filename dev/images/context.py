"""Lay out a build context in the cache, and name it by what is in it.

Every file's mode is set here, so that a checkout's umask changes no image. Wheels are hard links to the wheelhouse:
their lock already names their content, so only their names are read for the digest.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images.catalog import Image, Piece, version
from images.settings import ROOT

DIGEST_LENGTH: Final = 12
FILE_MODE: Final = 0o644
PROGRAM_MODE: Final = 0o755
WHEELS: Final = "wheels"
LEFT_OUT: Final = frozenset({"__pycache__", "README.md"})


@dataclass(frozen=True, slots=True)
class Context:
    """A laid out build context."""

    folder: Path
    digest: str
    arguments: dict[str, str]  # of the build


def lay_out(image: Image, folder: Path, *, wheelhouses: Mapping[str, Path], uv: Path, base: str) -> Context:
    """Replace ``folder`` by the image's context."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    own = Piece(f"images/{image.name}", ".")
    for piece in (own, Piece("images/steps", "steps"), *image.pieces):
        copy_piece(piece, folder)
    place(uv, folder / "bin" / "uv", mode=PROGRAM_MODE)
    arguments = {"BASE": base, "VERSION": version()}
    for lock in image.locks:
        copied = folder / "locks" / f"{lock}.txt"
        place(ROOT / "locks" / f"{lock}.txt", copied)
        link_wheels(wheelhouses[lock], folder / WHEELS / lock)
        installer = folder / "steps" / "packages.py"
        arguments[f"{lock.upper().replace('-', '_')}_WHEELS"] = digest_of([("lock", copied), ("installer", installer)])
    return Context(folder=folder, digest=digest_of(entries(folder), *sorted(arguments.items())), arguments=arguments)


def copy_piece(piece: Piece, folder: Path) -> None:
    """Copy one piece of the checkout."""
    source, target = ROOT / piece.source, folder / piece.target
    left_out = LEFT_OUT | set(piece.without)
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        if path.is_file() and not left_out & set(relative.parts):
            place(path, target / relative)


def place(source: Path, target: Path, *, mode: int = FILE_MODE) -> None:
    """Copy one file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def link_wheels(source: Path, target: Path) -> None:
    """Link a wheelhouse's files, or copy where links are not possible."""
    target.mkdir(parents=True)
    for wheel in sorted(source.glob("*.whl")):
        try:
            os.link(wheel, target / wheel.name)
        except OSError:
            shutil.copyfile(wheel, target / wheel.name)


def entries(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each file of a context with its name in it."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path


def digest_of(files: Iterable[tuple[str, Path]], *words: tuple[str, str]) -> str:
    """Return a short digest of named files and words."""
    digest = hashlib.sha256()
    for name, path in files:
        content = b"" if name.startswith(f"{WHEELS}/") else hashlib.sha256(path.read_bytes()).digest()
        digest.update(f"{name}\0".encode() + content)
    for key, value in words:
        digest.update(f"{key}={value}\0".encode())
    return digest.hexdigest()[:DIGEST_LENGTH]
