"""The OCI layout: found when whole, stored uncompressed, pruned, and packed for a reader that has some of it."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from images.errors import ImageError
from images.layout import COMPRESSED, CONTAINERD_NAME, LAYER, REF_NAME, Layout, Stored

REF = "localhost/sandyard/thing:1"
CONTENT = b"a layer" * 1000


def put(folder: Path, data: bytes) -> tuple[str, int]:
    digest = hashlib.sha256(data).hexdigest()
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    (blobs / digest).write_bytes(data)
    return f"sha256:{digest}", len(data)


def add_image(folder: Path, ref: str = REF, content: bytes = CONTENT) -> None:
    """Write an image as buildah's push leaves it."""
    config, config_size = put(folder, json.dumps({"for": ref}).encode())
    layer, layer_size = put(folder, gzip.compress(content))
    manifest: dict[str, Any] = {
        "schemaVersion": 2,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": config, "size": config_size},
        "layers": [{"mediaType": COMPRESSED, "digest": layer, "size": layer_size}],
    }
    digest, size = put(folder, json.dumps(manifest).encode())
    index = folder / "index.json"
    known = json.loads(index.read_text())["manifests"] if index.exists() else []
    entry = {"digest": digest, "size": size, "annotations": {REF_NAME: ref}}
    index.write_text(json.dumps({"schemaVersion": 2, "manifests": [*known, entry]}))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    add_image(tmp_path)
    return Layout(tmp_path)


def archived(layout: Layout, stored: Stored, *, without: set[str]) -> dict[str, bytes]:
    output = io.BytesIO()
    layout.write_archive(stored, output, names=(stored.ref, stored.digest_ref), without=without)
    output.seek(0)
    with tarfile.open(fileobj=output) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]


def test_an_image_is_found_by_its_reference(layout: Layout) -> None:
    stored = layout.get(REF)
    assert stored.digest_ref == f"localhost/sandyard/thing@{stored.digest}"
    assert len(stored.blobs) == 3
    assert layout.find("localhost/sandyard/thing:2") is None


def test_an_image_that_lost_a_blob_is_not_there(layout: Layout) -> None:
    layout.blob(layout.get(REF).blobs[-1]).unlink()
    assert layout.find(REF) is None
    with pytest.raises(ImageError, match="make images"):
        layout.get(REF)


def test_an_empty_folder_has_nothing(tmp_path: Path) -> None:
    assert Layout(tmp_path / "none").find(REF) is None


def test_uncompressed_a_layer_is_named_by_its_content(layout: Layout) -> None:
    before = layout.get(REF)
    layout.uncompress(REF)
    after = layout.get(REF)
    assert after.config == before.config
    assert after.digest != before.digest
    assert layout.blob(after.blobs[-1]).read_bytes() == CONTENT
    assert after.layer_bytes == len(CONTENT)
    manifest = json.loads(layout.blob(after.digest).read_bytes())
    assert [layer["mediaType"] for layer in manifest["layers"]] == [LAYER]
    layout.uncompress(REF)
    assert layout.get(REF) == after


def test_only_what_is_kept_stays(layout: Layout) -> None:
    add_image(layout.folder, "localhost/sandyard/thing:2", b"another layer")
    shared = layout.get(REF).config
    layout.keep_only(["localhost/sandyard/thing:2"])
    assert layout.find(REF) is None
    assert not layout.blob(shared).exists()
    kept = layout.get("localhost/sandyard/thing:2")
    left = {f"sha256:{path.name}" for path in (layout.folder / "blobs" / "sha256").iterdir()}
    assert left == set(kept.blobs)


def test_an_archive_leaves_out_what_its_reader_has(layout: Layout) -> None:
    stored = layout.get(REF)
    entries = archived(layout, stored, without={stored.blobs[-1]})
    blobs = {f"sha256:{name.rpartition('/')[2]}" for name in entries if name.startswith("blobs/")}
    assert blobs == set(stored.blobs[:-1])
    named = [entry["annotations"][CONTAINERD_NAME] for entry in json.loads(entries["index.json"])["manifests"]]
    assert named == [REF, stored.digest_ref]


def test_an_archive_comes_back_as_the_same_content(layout: Layout, tmp_path: Path) -> None:
    layout.uncompress(REF)
    stored = layout.get(REF)
    other = Layout(tmp_path / "other")
    for _ in range(2):  # a second time replaces the first
        output = io.BytesIO()
        layout.write_archive(stored, output, names=(REF,), without=())
        output.seek(0)
        other.add_archive(REF, output)
    assert len(json.loads((other.folder / "index.json").read_text())["manifests"]) == 1
    back = other.get(REF)
    assert (back.config, back.blobs[1:]) == (stored.config, stored.blobs[1:])


def test_a_compressed_layer_is_taken_in_without_its_compression(layout: Layout, tmp_path: Path) -> None:
    output = io.BytesIO()
    layout.write_archive(layout.get(REF), output, names=(REF,), without=())
    output.seek(0)
    other = Layout(tmp_path / "other")
    other.add_archive(REF, output)
    assert other.blob(other.get(REF).blobs[-1]).read_bytes() == CONTENT


def test_an_old_dockers_archive_with_a_layer_twice(tmp_path: Path) -> None:
    output = io.BytesIO()
    manifest = [{"Config": "abc.json", "Layers": ["1/layer.tar", "2/layer.tar", "3/layer.tar"]}]
    files = {"1/layer.tar": CONTENT, "2/layer.tar": b"other", "abc.json": b"{}"}
    with tarfile.open(fileobj=output, mode="w") as archive:
        for name, data in {**files, "manifest.json": json.dumps(manifest).encode()}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        again = tarfile.TarInfo("3/layer.tar")
        again.type, again.linkname = tarfile.SYMTYPE, "../1/layer.tar"
        archive.addfile(again)
    output.seek(0)
    layout = Layout(tmp_path)
    layout.add_archive(REF, output)
    layers = json.loads(layout.blob(layout.get(REF).digest).read_bytes())["layers"]
    assert [layout.blob(layer["digest"]).read_bytes() for layer in layers] == [CONTENT, b"other", CONTENT]


def test_an_archive_of_another_kind_is_refused(tmp_path: Path) -> None:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("something"))
    output.seek(0)
    with pytest.raises(ImageError, match="no archive of one image"):
        Layout(tmp_path).add_archive(REF, output)
