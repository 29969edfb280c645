"""Files into the workspace before a run, artifacts out of it after one.

Placing happens before any user byte. Collecting happens when every process of the run is dead, in a forked helper
that is locked to the output folder: it opens regular files only, relative to folder descriptors, follows no link,
and writes frames to the agent itself while PID 1 waits. What it looks at is bounded, whatever a run has left.
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
MAX_ENTRIES: Final = 100_000  # looked at, of whatever kind
FILE_MODE: Final = 0o644
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
Write = Callable[[bytes], None]


class Placement:
    """Files arriving in pieces."""

    def __init__(self, root: str = WORKSPACE) -> None:
        self._root = root
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
            self.problem = f"{path}: {getattr(error, 'strerror', None) or error}"

    def _open(self, path: str) -> int:
        parts = path.split("/")
        if not all(part not in {"", ".", ".."} and "\0" not in part for part in parts):
            raise ValueError("the path leaves the workspace")
        folder = os.open(self._root, FOLDER)
        try:
            for part in parts[:-1]:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
                deeper = os.open(part, FOLDER, dir_fd=folder)
                os.close(folder)
                folder = deeper
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(parts[-1], flags, FILE_MODE, dir_fd=folder)
        finally:
            os.close(folder)


class Collection:
    """The artifacts of one run, as far as their bounds go."""

    def __init__(self, write: Write, *, max_bytes: int, max_count: int) -> None:
        self._write = write
        self._bytes_left = max_bytes
        self._count_left = max_count
        self._bounds = f"at most {max_count} regular files and {max_bytes} bytes, with printable names"
        self._entries_left = MAX_ENTRIES
        self._left_out = 0

    def send(self, root: str = OUTPUT) -> list[str]:
        """Send every artifact as frames; return warnings about what was left out."""
        try:
            folder = os.open(root, FOLDER)
        except OSError:
            return ["the output folder is not one any more"]
        try:
            for path, descriptor in self._files(folder, prefix="", depth=0):
                self._take(path, descriptor)
        finally:
            os.close(folder)
        warnings = []
        if self._left_out:
            warnings.append(f"{self._left_out} artifacts were left out: {self._bounds}")
        if self._entries_left < 0:
            warnings.append(f"the output folder holds more than {MAX_ENTRIES} entries; the rest was not looked at")
        return warnings

    def _files(self, folder: int, *, prefix: str, depth: int) -> Iterator[tuple[str, int]]:
        """Yield the path and an open descriptor of each regular file, sorted; what is no file is left out."""
        for name in self._names(folder):
            path = f"{prefix}{name}"
            try:
                kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                if stat.S_ISDIR(kind) and depth < MAX_DEPTH:
                    with opened(name, FOLDER, folder) as inner:
                        yield from self._files(inner, prefix=f"{path}/", depth=depth + 1)
                elif stat.S_ISREG(kind):
                    with opened(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, folder) as descriptor:
                        yield path, descriptor
                else:
                    self._left_out += 1
            except OSError:
                self._left_out += 1

    def _names(self, folder: int) -> list[str]:
        names = []
        with os.scandir(folder) as entries:
            for entry in entries:
                self._entries_left -= 1
                if self._entries_left < 0:
                    break
                names.append(entry.name)
        return sorted(names)

    def _take(self, path: str, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        named_well = path.isprintable() and len(path.encode(errors="replace")) <= wire.PATH_BYTES
        if not named_well or size > self._bytes_left or self._count_left == 0:
            self._left_out += 1
            return
        self._count_left -= 1
        self._bytes_left -= size
        left = size
        while True:
            piece = os.read(descriptor, min(PIECE_BYTES, left)) if left else b""
            left -= len(piece)
            last = left == 0 or not piece
            self._write(wire.encode({"type": "artifact", "path": path, "last": last}, piece))
            if last:
                return


@contextlib.contextmanager
def opened(name: str, flags: int, folder: int) -> Iterator[int]:
    """Open relative to a folder, and close in the end."""
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
