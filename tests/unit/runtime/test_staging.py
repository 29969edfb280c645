"""What a tree must be to be published: forms that no installer of ours makes, put there by hand."""

import os
from pathlib import Path

import pytest

from harness.index import record_digest
from sandyard_runtime.agent.install.staging import StagingError, strip, usage, verify

CODE = b"x = 1\n"
BOUNDS = {"max_bytes": 10_000, "max_files": 100}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    info = site / "a-1.dist-info"
    info.mkdir(parents=True)
    (site / "a.py").write_bytes(CODE)
    list_files(site, f"a.py,sha256={record_digest(CODE)},{len(CODE)}")
    return site


def list_files(site: Path, *lines: str) -> None:
    record = "a-1.dist-info/RECORD"
    (site / record).write_text("\n".join([*lines, f"{record},,", ""]))


def test_a_plain_tree_passes(site: Path) -> None:
    verify(site, **BOUNDS)


def test_a_link_is_refused(site: Path) -> None:
    (site / "b.py").symlink_to("/etc/passwd")
    with pytest.raises(StagingError, match="regular"):
        verify(site, **BOUNDS)


def test_a_linked_folder_is_refused(site: Path, tmp_path: Path) -> None:
    (site / "b").symlink_to(tmp_path)
    with pytest.raises(StagingError, match="regular"):
        verify(site, **BOUNDS)


def test_a_second_name_for_a_file_is_refused(site: Path) -> None:
    os.link(site / "a.py", site / "b.py")
    with pytest.raises(StagingError, match="regular"):
        verify(site, **BOUNDS)


def test_a_pipe_is_refused(site: Path) -> None:
    os.mkfifo(site / "b.py")
    with pytest.raises(StagingError, match="regular"):
        verify(site, **BOUNDS)


@pytest.mark.parametrize(
    "line", ["../a.py,sha256=AA,6", "/a.py,sha256=AA,6", "a.py,,6", "a.py,md5=AA,6", "a.py,sha256=A,6", "a.py"]
)
def test_a_record_that_cannot_be_held_to_is_refused(site: Path, line: str) -> None:
    list_files(site, line)
    with pytest.raises(StagingError):
        verify(site, **BOUNDS)


def test_a_listed_file_that_is_not_there_is_refused(site: Path) -> None:
    (site / "a.py").unlink()
    with pytest.raises(StagingError, match="not installed"):
        verify(site, **BOUNDS)


def test_a_record_deeper_in_the_tree_lists_nothing(site: Path) -> None:
    inner = site / "vendored" / "b-1.dist-info"
    inner.mkdir(parents=True)
    (inner / "RECORD").write_text("vendored/b.py,sha256=AA,1\n")
    (site / "vendored" / "b.py").write_text("y")
    with pytest.raises(StagingError, match="in no RECORD"):
        verify(site, **BOUNDS)


def test_scripts_and_path_files_go(site: Path) -> None:
    (site / "bin").mkdir()
    (site / "bin" / "tool").touch()
    (site / "harm.pth").touch()
    strip(site)
    assert sorted(entry.name for entry in site.iterdir()) == ["a-1.dist-info", "a.py"]


def test_a_file_with_two_names_is_measured_once(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"x" * 8192)
    alone = usage(tmp_path).bytes
    os.link(tmp_path / "one", tmp_path / "two")
    assert usage(tmp_path).bytes == alone
