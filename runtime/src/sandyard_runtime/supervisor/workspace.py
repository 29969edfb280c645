"""Files into the workspace before a run, artifacts out of it after one.

Placing happens before any user byte. Collecting happens when every process of the run is dead, in a forked helper
that is locked to the output folder: it opens regular files only, relative to folder descriptors, follows no link,
and writes frames to the agent itself while PID 1 waits.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import Final

from sandyard_runtime import wire

WORKSPACE: Final = "/workspace"
OUTPUT: Final = "/workspace/output"
PIECE_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 32
FILE_MODE: Final = 0o644
Write = Callable[[bytes], None]


class Placement:
    """Files arriving in pieces."""

    def __init__(self, root: str = WORKSPACE) -> None:
        self._root = root
        self._path = ""
        self._descriptor = -1
        self.problem = ""

    def take(self, path: str, data: bytes, *, last: bool) -> None:
        """Write a piece; the first problem is kept and the rest ignored."""
        if self.problem:
            return
        try:
            if self._descriptor < 0:
                self._descriptor = self._open(path)
            view = memoryview(data)
            while view:
                view = view[os.write(self._descriptor, view) :]
            if last:
                os.close(self._descriptor)
                self._descriptor = -1
        except (OSError, ValueError) as error:
            self.problem = f"{path}: {error}"

    def _open(self, path: str) -> int:
        parts = path.split("/")
        if not all(part not in {"", ".", ".."} and "\0" not in part for part in parts):
            raise ValueError("the path leaves the workspace")
        folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
                deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                os.close(folder)
                folder = deeper
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(parts[-1], flags, FILE_MODE, dir_fd=folder)
        finally:
            os.close(folder)


def regular_files(folder: int, *, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, int]]:
    """Yield the path and an open descriptor of each regular file below a folder, sorted; links are never followed."""
    names = sorted(os.listdir(folder))
    for name in names:
        path = f"{prefix}{name}"
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode) and depth < MAX_DEPTH:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                try:
                    yield from regular_files(inner, prefix=f"{path}/", depth=depth + 1)
                finally:
                    os.close(inner)
            elif stat.S_ISREG(found.st_mode):
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                descriptor = os.open(name, flags, dir_fd=folder)
                try:
                    yield path, descriptor
                finally:
                    os.close(descriptor)
        except OSError:
            continue


def collect(write: Write, *, max_bytes: int, max_count: int) -> list[str]:
    """Send every artifact as frames; return warnings about what was left out."""
    try:
        root = os.open(OUTPUT, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    left_out, sent, count = 0, 0, 0
    try:
        for path, descriptor in regular_files(root):
            size = os.fstat(descriptor).st_size
            readable = path.isprintable() and len(path.encode(errors="replace")) <= wire.PATH_BYTES
            if count >= max_count or sent + size > max_bytes or not readable:
                left_out += 1
                continue
            count, sent = count + 1, sent + size
            _send_file(write, path, descriptor, size)
    finally:
        os.close(root)
    if not left_out:
        return []
    return [
        f"{left_out} artifacts were left out: at most {max_count} files and {max_bytes} bytes, with printable names"
    ]


def _send_file(write: Write, path: str, descriptor: int, size: int) -> None:
    left = size
    while True:
        piece = os.read(descriptor, min(PIECE_BYTES, left)) if left else b""
        left -= len(piece)
        last = left == 0 or not piece
        write(wire.encode({"type": "artifact", "path": path, "last": last}, piece))
        if last:
            return
