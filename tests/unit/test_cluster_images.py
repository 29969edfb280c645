"""Images of the node's own pods are made of static programs, and their names follow their content."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from sandyard_node.images import Image


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_bytes(b"\x7fELF")
    return path


def image(program: Path, *links: tuple[str, str]) -> Image:
    return Image("tool", {"bin/tool": program}, ("/bin/tool",), links)


def read(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
        return {name: file.read() for name, file in files.items() if file}


def test_the_archive_is_what_docker_save_writes(program: Path) -> None:
    files = read(image(program, ("bin/sh", "tool")).archive())
    (manifest,) = json.loads(files["manifest.json"])
    config = json.loads(files[manifest["Config"]])
    assert manifest["RepoTags"] == [image(program, ("bin/sh", "tool")).reference]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(files['layer.tar']).hexdigest()}"]
    assert config["config"]["User"] != "0"
    with tarfile.open(fileobj=io.BytesIO(files["layer.tar"])) as layer:
        assert layer.getmember("bin/tool").mode == 0o755
        assert layer.getmember("bin/sh").linkname == "tool"
        assert layer.getmember("tmp").mode == 0o1777


def test_the_same_content_has_the_same_bytes_and_name(program: Path) -> None:
    assert image(program).archive() == image(program).archive()
    assert image(program).reference == image(program).reference


def test_other_content_has_another_name(program: Path) -> None:
    before = image(program).reference
    with_link = image(program, ("bin/sh", "tool")).reference
    program.write_bytes(b"\x7fELF2")
    assert len({before, with_link, image(program).reference}) == 3
