"""The built images as one OCI image layout in the cache: blobs by digest, references in its index.

Layers that images share, or that a rebuild did not change, are there once. Written by the engines; read, pruned
and packed into archives here.
"""

import gzip
import hashlib
import io
import json
import posixpath
import tarfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from images.errors import ImageError

REF_NAME: Final = "org.opencontainers.image.ref.name"
CONTAINERD_NAME: Final = "io.containerd.image.name"  # a full reference, taken as it is by containerd
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar"
COMPRESSED: Final = f"{LAYER}+gzip"
GZIP_START: Final = b"\x1f\x8b"
PIECE_BYTES: Final = 1 << 20
VERSION: Final = '{"imageLayoutVersion":"1.0.0"}'


@dataclass(frozen=True, slots=True)
class Stored:
    """One image of a layout."""

    ref: str
    digest: str  # of the manifest
    manifest_bytes: int
    config: str  # digest, which Docker and CRI call the image's id
    blobs: tuple[str, ...]  # manifest, config and layers
    layer_bytes: int

    @property
    def digest_ref(self) -> str:
        """The reference that can never mean another image."""
        return f"{self.ref.rpartition(':')[0]}@{self.digest}"


class Layout:
    """An OCI image layout folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def blob(self, digest: str) -> Path:
        """Return where a blob is."""
        algorithm, _, value = digest.partition(":")
        return self.folder / "blobs" / algorithm / value

    def find(self, ref: str) -> Stored | None:
        """Return an image, if all of it is here."""
        for entry in self._index()["manifests"]:
            if entry.get("annotations", {}).get(REF_NAME) == ref:
                stored = self._read(ref, entry)
                return stored if all(self.blob(digest).exists() for digest in stored.blobs) else None
        return None

    def get(self, ref: str) -> Stored:
        """Return an image that must be here."""
        stored = self.find(ref)
        if stored is None:
            raise ImageError(f"{ref} is not in {self.folder}.", fix="run: make images")
        return stored

    def keep_only(self, refs: Collection[str]) -> None:
        """Forget all other images and remove what no image uses."""
        index = self._index()
        kept = [entry for entry in index["manifests"] if entry.get("annotations", {}).get(REF_NAME) in refs]
        self._write_index(kept)
        used = {digest for entry in kept for digest in self._read("", entry).blobs}
        for path in (self.folder / "blobs" / "sha256").iterdir():
            if f"sha256:{path.name}" not in used:
                path.unlink()

    def uncompress(self, ref: str) -> None:
        """Store an image's layers as they are: found again by the next build, named by their content alone."""
        index = self._index()
        for entry in index["manifests"]:
            if entry.get("annotations", {}).get(REF_NAME) == ref:
                manifest = json.loads(self.blob(entry["digest"]).read_bytes())
                for layer in manifest["layers"]:
                    if layer["mediaType"] == COMPRESSED:
                        with gzip.open(self.blob(layer["digest"])) as content:
                            digest, size = self._take(content)
                        layer.update(mediaType=LAYER, digest=digest, size=size)
                digest, size = self._take(io.BytesIO(_dump(manifest)))
                entry.update(digest=digest, size=size)
        self._write_index(index["manifests"])

    def add_archive(self, ref: str, archive: IO[bytes]) -> None:
        """Take in the one image that ``docker save`` wrote, under a reference."""
        files: dict[str, tuple[str, int]] = {}
        listed: list[dict[str, Any]] = []
        with tarfile.open(fileobj=archive, mode="r|") as entries:
            for entry in entries:
                content = entries.extractfile(entry) if entry.isfile() else None
                if entry.issym():  # a layer that is there twice
                    target = posixpath.normpath(posixpath.join(posixpath.dirname(entry.name), entry.linkname))
                    files[entry.name] = files[target]
                elif content and entry.name == "manifest.json":
                    listed = json.load(content)
                elif content:
                    files[entry.name] = self._take(content)
        if len(listed) != 1:
            raise ImageError("the engine saved no archive of one image.", fix="is the Docker daemon well? docker info")
        digest, size = files[listed[0]["Config"]]
        layers = [self._plain(*files[name]) for name in listed[0]["Layers"]]
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "digest": digest, "size": size},
            "layers": [{"mediaType": LAYER, "digest": digest, "size": size} for digest, size in layers],
        }
        digest, size = self._take(io.BytesIO(_dump(manifest)))
        others = [known for known in self._index()["manifests"] if known["annotations"][REF_NAME] != ref]
        added = {"mediaType": MANIFEST, "digest": digest, "size": size, "annotations": {REF_NAME: ref}}
        self._write_index([*others, added])

    def write_archive(
        self, stored: Stored, target: IO[bytes], *, names: Iterable[str], without: Collection[str]
    ) -> None:
        """Write one image under full reference names, without the blobs its reader has.

        The archive is an OCI layout and what ``docker load`` reads, in one.
        """
        manifests = [self._descriptor(stored, name) for name in names]
        with tarfile.open(fileobj=target, mode="w|") as archive:
            _add(archive, "oci-layout", VERSION.encode())
            _add(archive, "index.json", _dump({"schemaVersion": 2, "manifests": manifests}))
            _add(archive, "manifest.json", _dump([self._docker_manifest(stored)]))
            for digest in stored.blobs:
                if digest not in without:
                    path = self.blob(digest)
                    entry = tarfile.TarInfo(self._name(digest))
                    entry.size = path.stat().st_size
                    with path.open("rb") as content:
                        archive.addfile(entry, content)

    def _name(self, digest: str) -> str:
        return str(self.blob(digest).relative_to(self.folder))

    def _docker_manifest(self, stored: Stored) -> dict[str, Any]:
        layers = json.loads(self.blob(stored.digest).read_bytes())["layers"]
        return {
            "Config": self._name(stored.config),
            "RepoTags": [stored.ref],
            "Layers": [self._name(layer["digest"]) for layer in layers],
        }

    def _descriptor(self, stored: Stored, name: str) -> dict[str, Any]:
        annotations = {CONTAINERD_NAME: name, REF_NAME: name}
        known = {"mediaType": MANIFEST, "digest": stored.digest, "size": stored.manifest_bytes}
        return {**known, "annotations": annotations}

    def _read(self, ref: str, entry: dict[str, Any]) -> Stored:
        manifest = json.loads(self.blob(entry["digest"]).read_bytes())
        layers = manifest["layers"]
        return Stored(
            ref=ref,
            digest=entry["digest"],
            manifest_bytes=entry["size"],
            config=manifest["config"]["digest"],
            blobs=(entry["digest"], manifest["config"]["digest"], *dict.fromkeys(layer["digest"] for layer in layers)),
            layer_bytes=sum(layer["size"] for layer in layers),
        )

    def _take(self, content: IO[bytes] | gzip.GzipFile) -> tuple[str, int]:
        """Store a blob; return its digest and size."""
        folder = self.folder / "blobs" / "sha256"
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / ".fresh"
        digest = hashlib.sha256()
        with fresh.open("wb") as file:
            while piece := content.read(PIECE_BYTES):
                digest.update(piece)
                file.write(piece)
            size = file.tell()
        fresh.rename(folder / digest.hexdigest())
        return f"sha256:{digest.hexdigest()}", size

    def _plain(self, digest: str, size: int) -> tuple[str, int]:
        """Return the digest and size of a layer without its compression."""
        path = self.blob(digest)
        with path.open("rb") as file:
            if file.read(len(GZIP_START)) != GZIP_START:
                return digest, size
        with gzip.open(path) as content:
            return self._take(content)

    def _index(self) -> dict[str, Any]:
        try:
            index: dict[str, Any] = json.loads((self.folder / "index.json").read_bytes())
        except FileNotFoundError:
            return {"schemaVersion": 2, "manifests": []}
        return index

    def _write_index(self, manifests: list[dict[str, Any]]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "oci-layout").write_text(VERSION)
        fresh = self.folder / "index.json.new"
        fresh.write_bytes(_dump({"schemaVersion": 2, "manifests": manifests}))
        fresh.rename(self.folder / "index.json")


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
