"""The inputs of a run, staged: the manifest in memory, the blobs in a file without a name.

Read as it arrives, so that neither an 80 MiB bundle nor a lying length costs memory. The manifest may hold
secrets and never touches the disk. Standard library and the wire models only.
"""

import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final

from sandyard_api.wire import LENGTH_BYTES, MAX_JSON_BYTES, BundleManifest, Part, PartKind

MAX_BUNDLE_BYTES: Final = 80 * 1024 * 1024  # 64 ConfigMap values, 10 MiB of stdin, the code, the manifest
MAX_PATH_BYTES: Final = 4096
READ_BYTES: Final = 256 * 1024


class BundleError(Exception):
    """The bundle is not what its manifest says, or the manifest says what may not be."""


class StagedBundle:
    """A verified bundle, until a run takes it or another replaces it."""

    def __init__(self, manifest: BundleManifest, digest: str, blobs: IO[bytes]) -> None:
        self.manifest = manifest
        self.digest = digest
        self._blobs = blobs

    def parts(self) -> Iterator[tuple[Part, int]]:
        """Yield each part with the offset of its bytes."""
        offset = 0
        for part in self.manifest.parts:
            yield part, offset
            offset += part.bytes

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes of the blobs."""
        return os.pread(self._blobs.fileno(), size, offset)

    def close(self) -> None:
        """Give the disk back."""
        self._blobs.close()


async def receive(chunks: AsyncIterator[bytes], directory: Path) -> StagedBundle:
    """Read a bundle; raises BundleError, and leaves nothing behind then."""
    head = b""
    manifest_end = LENGTH_BYTES
    blobs = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - lives on in the staged bundle
    try:
        async for chunk in chunks:
            if len(head) >= manifest_end > LENGTH_BYTES:
                blobs.write(chunk)
                continue
            head += chunk
            if len(head) < LENGTH_BYTES:
                continue
            manifest_end = _manifest_end(head)
            blobs.write(head[manifest_end:])
            head = head[:manifest_end]
        blobs.flush()
        staged = _verified(head, manifest_end, blobs)
    except BaseException:
        blobs.close()
        raise
    return staged


def _manifest_end(head: bytes) -> int:
    length = int.from_bytes(head[:LENGTH_BYTES], "big")
    if not 0 < length <= MAX_JSON_BYTES:
        raise BundleError("the manifest is empty or too large")
    return LENGTH_BYTES + length


def _verified(head: bytes, manifest_end: int, blobs: IO[bytes]) -> StagedBundle:
    if len(head) < manifest_end or manifest_end == LENGTH_BYTES:
        raise BundleError("the bundle ends inside its manifest")
    raw = head[LENGTH_BYTES:]
    staged = StagedBundle(_manifest(raw), hashlib.sha256(raw).hexdigest(), blobs)
    _verify(staged, os.fstat(blobs.fileno()).st_size)
    return staged


def _manifest(raw: bytes) -> BundleManifest:
    try:
        manifest = BundleManifest.model_validate_json(raw)
    except ValueError as error:
        raise BundleError("the manifest is not one") from error
    kinds = [part.kind for part in manifest.parts]
    if kinds.count(PartKind.CODE) != 1 or kinds.count(PartKind.STDIN) > 1:
        raise BundleError("a bundle has one code part and at most one for stdin")
    paths = [part.path for part in manifest.parts if part.kind is PartKind.FILE]
    if len(set(paths)) != len(paths) or not all(map(_stays_inside, paths)):
        raise BundleError("a file's path leaves the workspace or is given twice")
    if any(part.bytes < 0 for part in manifest.parts):
        raise BundleError("a part has a negative length")
    return manifest


def _stays_inside(path: str) -> bool:
    """Tell whether ``path`` names a file below the workspace, spelled in its one way."""
    pure = PurePosixPath(path)
    return (
        0 < len(path.encode()) <= MAX_PATH_BYTES
        and not pure.is_absolute()
        and ".." not in pure.parts
        and str(pure) == path != "."
        and path.isprintable()
    )


def _verify(staged: StagedBundle, size: int) -> None:
    end = 0
    for part, offset in staged.parts():
        end = offset + part.bytes
        digest = hashlib.sha256()
        while offset < end and (piece := staged.read(offset, min(READ_BYTES, end - offset))):
            digest.update(piece)
            offset += len(piece)  # noqa: PLW2901 - walks through the part
        if offset != end or digest.hexdigest() != part.sha256:
            raise BundleError(f"part {part.kind} {part.path!r} is not what the manifest says")
    if end != size:
        raise BundleError("the bundle goes on after its last part")
