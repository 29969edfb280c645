"""The images' locks: every package by exact version and hash, no address, and what the tests ran with."""

import re
from pathlib import Path

import pytest

from images.catalog import IMAGES
from images.locks import SOURCES
from images.settings import ROOT, Settings
from images.wheels import download, lock_file

LOCKS = sorted({lock for image in IMAGES for lock in image.locks})
ENTRY = re.compile(r"^([a-z0-9-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def pins(path: Path) -> dict[str, str]:
    return {name: version for name, version, _ in ENTRY.findall(path.read_text())}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_is_pins_with_hashes_and_nothing_else(lock: str) -> None:
    text = lock_file(lock).read_text()
    assert ENTRY.sub("", text) == ""
    assert "//" not in text
    assert pins(lock_file(lock))


def test_every_lock_can_be_resolved_again() -> None:
    assert set(SOURCES) == set(LOCKS)


@pytest.mark.parametrize("lock", ["operator", "agent"])
def test_what_runs_is_what_was_tested(lock: str) -> None:
    tested = dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", (ROOT / "locks" / "dev.txt").read_text(), re.MULTILINE))
    assert pins(lock_file(lock)).items() <= tested.items()


def test_no_image_has_what_its_room_does_not_need() -> None:
    data = {"numpy", "pandas", "pyarrow", "duckdb", "matplotlib"}
    assert data <= pins(lock_file("runtime")).keys()
    assert not data & pins(lock_file("operator")).keys()
    assert not (data | {"kopf", "kubernetes"}) & pins(lock_file("agent")).keys()
    assert not {"pip", "setuptools"} & {name for lock in LOCKS for name in pins(lock_file(lock))}


def test_the_index_has_other_versions_than_the_image() -> None:
    served, shipped = pins(lock_file("index-packages")), pins(lock_file("runtime"))
    assert served["six"] == "1.17.0"
    assert "six" not in shipped
    assert all(served[name] != shipped[name] for name in ("numpy", "pandas"))


@pytest.mark.parametrize(("machine", "tag"), [("x86_64", "x86_64"), ("arm64", "aarch64")])
def test_wheels_are_fetched_by_hash_for_the_images_python(machine: str, tag: str, tmp_path: Path) -> None:
    settings = Settings.from_environment({"SANDYARD_CACHE": str(tmp_path)}, machine=machine)
    words = [str(word) for word in download(lock_file("agent"), tmp_path, settings)]
    assert {"--require-hashes", "--only-binary=:all:", "--no-deps", "--python-version=3.13"} <= set(words)
    platforms = [word for word in words if word.startswith("--platform=")]
    assert platforms
    assert all(word.endswith(f"_{tag}") for word in platforms)
    assert f"--platform=manylinux_2_41_{tag}" in platforms
    assert f"--platform=manylinux_2_42_{tag}" not in platforms  # newer than the base's C library
