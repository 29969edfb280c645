"""What uv left in its staging directory, checked file by file and published by one rename.

Runs after every process of the installer is gone, so nothing changes under it. Only directories and regular
files may be there, each of them listed with its hash in a RECORD; scripts and .pth files are taken out, for
nothing of ours would ever run them.
"""

import csv
import hashlib
import os
import shutil
import stat
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.utils import canonicalize_name

RECORD: Final = "RECORD"
INFO: Final = ".dist-info"
UNHASHED: Final = (f"{INFO}/{RECORD}", f"{INFO}/{RECORD}.jws", f"{INFO}/{RECORD}.p7s")
ALGORITHMS: Final = frozenset({"sha256", "sha384", "sha512"})
INSTALLER_LOCK: Final = ".lock"  # uv's own, in the target while it writes
SCRIPTS: Final = "bin"  # where uv puts a wheel's scripts below a target
PATH_FILE: Final = ".pth"
FILE_MODE: Final = 0o644
DIRECTORY_MODE: Final = 0o755
BLOCK: Final = 512


class StagingError(Exception):
    """What was installed may not be published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Disk taken by a tree; a file with several names is counted once."""

    bytes: int
    files: int


def usage(directory: Path) -> Usage:
    """Measure a tree, also while it changes; never follows a link."""
    size = 0.0
    files = 0
    waiting = [str(directory)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    status = entry.stat(follow_symlinks=False)
                    size += status.st_blocks * BLOCK / max(1, status.st_nlink)
                    files += 1
        except FileNotFoundError:
            continue
    return Usage(bytes=round(size), files=files)


def verify(site: Path, *, max_bytes: int, max_files: int) -> None:
    """Check every file of ``site``; raises StagingError naming the first that may not be there."""
    (site / INSTALLER_LOCK).unlink(missing_ok=True)
    present = set()
    total = 0
    for path, status in _walk(site):
        if stat.S_ISDIR(status.st_mode):
            (site / path).chmod(DIRECTORY_MODE)
            continue
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise StagingError(f"{path} is not a regular file of its own")
        (site / path).chmod(FILE_MODE)
        present.add(str(path))
        total += status.st_size
        if total > max_bytes or len(present) > max_files:
            raise StagingError(f"the packages are above {max_bytes} bytes or {max_files} files")
    claims = _claims(site, present)
    for listed in sorted(present):
        if listed.endswith(UNHASHED):
            continue
        expected = claims.get(listed)
        if not expected:
            raise StagingError(f"{listed} is in no RECORD")
        if not any(_digest(site / listed, algorithm) == digest for algorithm, digest in sorted(expected)):
            raise StagingError(f"{listed} is not what its RECORD says")
    absent = claims.keys() - present
    if absent:
        raise StagingError(f"{min(absent)} is in a RECORD but was not installed")


def strip(site: Path) -> None:
    """Take out scripts and .pth files."""
    shutil.rmtree(site / SCRIPTS, ignore_errors=True)
    for entry in site.glob(f"*{PATH_FILE}"):
        entry.unlink()


def wheels(site: Path) -> dict[str, str]:
    """Return the WHEEL file of each distribution by canonical name."""
    return {
        canonicalize_name(file.parent.name.partition("-")[0]): file.read_text(errors="replace")
        for file in site.glob(f"*{INFO}/WHEEL")
    }


def _walk(site: Path) -> Iterator[tuple[PurePosixPath, os.stat_result]]:
    waiting = [PurePosixPath()]
    while waiting:
        directory = waiting.pop()
        with os.scandir(site / directory) as entries:
            for entry in entries:
                path = directory / entry.name
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(path)
                yield path, status


def _claims(site: Path, present: set[str]) -> dict[str, set[tuple[str, bytes]]]:
    """Return, of all RECORDs, which hashes each path may have."""
    claims: dict[str, set[tuple[str, bytes]]] = {}
    records = [path for path in present if path.count("/") == 1 and path.endswith(f"{INFO}/{RECORD}")]
    for record in records:
        for path, claim in _read_record(site / record):
            claims.setdefault(path, set()).add(claim)
    return claims


def _read_record(record: Path) -> Iterator[tuple[str, tuple[str, bytes]]]:
    try:
        with record.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise StagingError(f"{record.parent.name} has a RECORD that cannot be read") from error
    for row in rows:
        path, claim = row[0], (row[1] if len(row) > 1 else "")
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts:
            raise StagingError(f"{record.parent.name} has a RECORD that leaves its directory")
        if str(pure).endswith(UNHASHED):
            continue
        algorithm, _, value = claim.partition("=")
        if algorithm not in ALGORITHMS:
            raise StagingError(f"{path} has no usable hash in its RECORD")
        try:
            digest = urlsafe_b64decode(value + "=" * (-len(value) % 4))
        except ValueError as error:
            raise StagingError(f"{path} has no usable hash in its RECORD") from error
        yield str(pure), (algorithm, digest)


def _digest(path: Path, algorithm: str) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).digest()
