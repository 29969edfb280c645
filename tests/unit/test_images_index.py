"""The index's own packages: each has the one fault it is there for, and is the same bytes each time."""

import base64
import csv
import hashlib
import io
import runpy
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.settings import ROOT

FOLDER = ROOT / "images" / "index"
BOMB_BYTES = 640 * 1024 * 1024


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("packages")
    runpy.run_path(str(FOLDER / "make_packages.py"))["main"](FOLDER / "packages", target)
    return target


def opened(packages: Path, name: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(packages / f"{name}-py3-none-any.whl")


def lies(wheel: zipfile.ZipFile) -> Iterator[str]:
    """Yield each file that RECORD does not describe truly."""
    record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
    described = {row[0]: row[1:] for row in csv.reader(io.TextIOWrapper(wheel.open(record)))}
    for name in wheel.namelist():
        digest = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
        if name != record and described.get(name) != [f"sha256={digest}", str(wheel.getinfo(name).file_size)]:
            yield name


def test_the_same_sources_make_the_same_bytes(packages: Path) -> None:
    made = runpy.run_path(str(FOLDER / "make_packages.py"))
    for folder in sorted((FOLDER / "packages").iterdir()):
        source = made["read"](folder)
        if source.fault != "swells":  # seconds of compressing zeros
            name, content = made["make"](source)
            assert (packages / name).read_bytes() == content


def test_each_package_is_described() -> None:
    described = (FOLDER / "README.md").read_text()
    for folder in (FOLDER / "packages").iterdir():
        assert folder.name.rpartition("-")[0] in described


@pytest.mark.parametrize(
    "name",
    ["sandyard_pure-1.0", "sandyard_shared-2.0", "sandyard_harm-1.0", "sandyard_handy-1.0", "sandyard_linking-1.0"],
)
def test_a_whole_wheel_tells_the_truth(packages: Path, name: str) -> None:
    assert list(lies(opened(packages, name))) == []


def test_a_record_can_lie(packages: Path) -> None:
    assert list(lies(opened(packages, "sandyard_misrecorded-1.0"))) == ["sandyard_misrecorded/__init__.py"]


def test_a_wheel_can_be_cut(packages: Path) -> None:
    with pytest.raises(zipfile.BadZipFile):
        opened(packages, "sandyard_truncated-1.0")


def test_a_wheel_can_climb(packages: Path) -> None:
    assert [name for name in opened(packages, "sandyard_climbing-1.0").namelist() if ".." in name]


def test_a_wheel_can_hold_a_link(packages: Path) -> None:
    entries = opened(packages, "sandyard_linking-1.0").infolist()
    assert [entry.filename for entry in entries if stat.S_ISLNK(entry.external_attr >> 16)]


def test_a_wheel_can_swell(packages: Path) -> None:
    wheel = opened(packages, "sandyard_bomb-1.0")
    assert sum(entry.file_size for entry in wheel.infolist()) > BOMB_BYTES
    assert (packages / "sandyard_bomb-1.0-py3-none-any.whl").stat().st_size < BOMB_BYTES / 500


def test_a_wheel_can_bring_a_path_file_a_script_and_data(packages: Path) -> None:
    names = opened(packages, "sandyard_handy-1.0").namelist()
    assert "sandyard_handy.pth" in names
    assert {part for name in names for part in name.split("/") if part in {"scripts", "data"}} == {"scripts", "data"}


def test_two_packages_cannot_agree(packages: Path) -> None:
    asked = [
        opened(packages, f"sandyard_{side}-1.0").read(f"sandyard_{side}-1.0.dist-info/METADATA").decode()
        for side in ("left", "right")
    ]
    assert "Requires-Dist: sandyard-shared==1.0" in asked[0]
    assert "Requires-Dist: sandyard-shared==2.0" in asked[1]


def test_a_package_can_be_for_elsewhere_or_later(packages: Path) -> None:
    assert (packages / "sandyard_elsewhere-1.0-cp313-cp313-win_amd64.whl").exists()
    metadata = opened(packages, "sandyard_future-1.0").read("sandyard_future-1.0.dist-info/METADATA").decode()
    assert "Requires-Python: >=3.99" in metadata


def test_a_source_distribution_is_all_there_is(packages: Path) -> None:
    found = list(packages.glob("sandyard_source*"))
    assert [path.name for path in found] == ["sandyard_source-1.0.tar.gz"]
    with tarfile.open(found[0]) as archive:
        assert "sandyard_source-1.0/setup.py" in archive.getnames()
