"""Build contexts: named by content alone, complete for their Dockerfile, and true to the contract of names."""

import os
import re
import runpy
from collections.abc import Mapping
from pathlib import Path

import pytest

from images import base, context
from images.catalog import IMAGES, Image, Piece
from images.context import Context, copy_piece, digest_of, lay_out
from images.settings import ROOT, Settings
from sandyard_api import names

LOCKS = sorted({lock for image in IMAGES for lock in image.locks})
MOUNTED = re.compile(r'"(?:--\w+=)?/build/(\S+?)"')
COPIED = re.compile(r"^COPY (?!--from)(.+) \S+$", re.MULTILINE)


@pytest.fixture
def ingredients(tmp_path: Path) -> Mapping[str, Path]:
    (tmp_path / "uv").write_bytes(b"a program")
    for lock in LOCKS:
        (tmp_path / lock).mkdir()
        (tmp_path / lock / "thing-1.0-py3-none-any.whl").write_bytes(b"a wheel")
    return {lock: tmp_path / lock for lock in LOCKS} | {"": tmp_path / "uv"}


def laid_out(image: Image, ingredients: Mapping[str, Path], folder: Path) -> Context:
    return lay_out(image, folder, wheelhouses=ingredients, uv=ingredients[""], base="localhost/sandyard/base:1")


each_image = pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)


@each_image
def test_its_context_has_all_that_its_dockerfile_names(
    image: Image, ingredients: Mapping[str, Path], tmp_path: Path
) -> None:
    laid = laid_out(image, ingredients, tmp_path / "context")
    text = (laid.folder / "Dockerfile").read_text().replace("\\\n", "")
    copied = [word for line in COPIED.findall(text) for word in line.split()]
    assert copied
    for path in [*copied, *MOUNTED.findall(text)]:
        assert (laid.folder / path).exists(), path
    asked = set(re.findall(r"^ARG (\w+)", text, re.MULTILINE))
    assert asked <= set(laid.arguments)


@each_image
def test_it_starts_from_the_base_and_ends_without_rights(image: Image) -> None:
    lines = (image.folder / "Dockerfile").read_text().splitlines()
    steps = [line for line in lines if line and not line.startswith("#")]
    assert steps[:2] == ["ARG BASE", "FROM ${BASE}"]
    assert re.fullmatch(r"USER 1000\d", steps[-1])


@each_image
def test_its_name_depends_on_content_alone(image: Image, ingredients: Mapping[str, Path], tmp_path: Path) -> None:
    first = laid_out(image, ingredients, tmp_path / "context")
    for path in first.folder.rglob("*"):
        os.utime(path, (0, 0))
    old = os.umask(0o077)
    try:
        second = laid_out(image, ingredients, tmp_path / "context")
    finally:
        os.umask(old)
    assert second.digest == first.digest
    assert {path.stat().st_mode & 0o777 for path in second.folder.rglob("*.py")} == {0o644}


def test_a_change_of_code_changes_the_name_and_no_wheels(
    ingredients: Mapping[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = IMAGES[0]
    before = laid_out(runtime, ingredients, tmp_path / "context")
    changed = copy_piece

    def with_a_change(piece: Piece, folder: Path) -> None:
        changed(piece, folder)
        if piece.source.endswith("sandyard_runtime"):
            (folder / piece.target / "wire.py").write_text("changed = True\n")

    monkeypatch.setattr(context, "copy_piece", with_a_change)
    after = laid_out(runtime, ingredients, tmp_path / "context")
    assert after.digest != before.digest
    assert after.arguments == before.arguments


def test_wheels_count_by_name(tmp_path: Path) -> None:
    wheel = tmp_path / "a.whl"
    wheel.write_bytes(b"1")
    first = digest_of([("wheels/x/a.whl", wheel), ("b", wheel)])
    wheel.write_bytes(b"2")
    assert digest_of([("wheels/x/a.whl", wheel), ("b", wheel)]) != first  # b is read
    one = digest_of([("wheels/x/a.whl", wheel)])
    wheel.write_bytes(b"3")
    assert digest_of([("wheels/x/a.whl", wheel)]) == one
    assert digest_of([("wheels/x/c.whl", wheel)]) != one


def test_the_runner_gets_no_agent(ingredients: Mapping[str, Path], tmp_path: Path) -> None:
    code = laid_out(IMAGES[0], ingredients, tmp_path / "context").folder / "code"
    runner = code / names.RUNTIME_SOURCE_DIR.removeprefix("/")
    assert (runner / "__main__.py").exists()
    assert (runner / "sandyard_runtime" / "supervisor" / "main.py").exists()
    assert not (runner / "sandyard_runtime" / "agent").exists()
    assert not (runner / "sandyard_api").exists()
    site = code / "opt/sandyard/agent/lib/python3.13/site-packages"
    assert (site / "sandyard_runtime" / "agent" / "__main__.py").exists()
    assert not list(code.rglob("*.pyc"))


def test_paths_and_users_are_those_of_the_contract() -> None:
    dockerfile = (ROOT / "images" / "runtime" / "Dockerfile").read_text()
    for place in (names.IMAGE_SITE, names.IMAGE_PACKAGES_FILE, names.RUNTIME_SOURCE_DIR):
        assert f'{place}"' in dockerfile
    assert names.AGENT_COMMAND[0] == "/opt/sandyard/agent/bin/python"
    assert names.UV_BINARY == "/opt/sandyard/agent/bin/uv"
    finish = runpy.run_path(str(ROOT / "images" / "base" / "finish.py"))
    assert finish["USERS"]["agent"] == names.AGENT_UID
    assert finish["USERS"]["runner"] == names.RUNNER_UID
    prepare = (ROOT / "images" / "runtime" / "prepare.py").read_text()
    mounts = (
        names.CONTROL_DIR,
        names.PACKAGES_DIR,
        names.AGENT_STATE_DIR,
        names.AGENT_SECRET_DIR,
        names.AGENT_TLS_DIR,
        names.WORKSPACE_DIR,
    )
    assert all(f'"{place}",' in prepare for place in mounts)
    path_file = (ROOT / "images" / "runtime" / "sandyard.pth").read_text().splitlines()
    assert path_file == [names.PACKAGES_SITE, names.IMAGE_SITE]


def test_the_public_base_is_pinned_and_both_ways_share_its_packages() -> None:
    dockerfile = (ROOT / "images" / "base" / "Dockerfile").read_text()
    assert re.search(r"^ARG DEBIAN=debian:trixie-slim@sha256:[0-9a-f]{64}$", dockerfile, re.MULTILINE)
    packages = (ROOT / "images" / "base" / "packages.txt").read_text().split()
    assert packages == sorted(packages)
    assert "python3.13" in packages


def test_the_bases_name_tells_the_machine_it_is_for(tmp_path: Path) -> None:
    digests = {
        base.digest(Settings.from_environment({"SANDYARD_CACHE": str(tmp_path)}, machine=machine))
        for machine in ("x86_64", "aarch64", "arm64")
    }
    assert len(digests) == 2
