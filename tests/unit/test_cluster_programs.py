"""Programs are built once per content of their Go module, whole or not at all."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from sandyard_node import programs
from sandyard_node.errors import NodeError
from sandyard_node.programs import Group
from sandyard_node.progress import Progress
from sandyard_node.settings import HERE, Settings

SOURCE = 'package main\n\nfunc main() { println("built") }\n'


class LocalGroup(Group):
    """A group of which the module is a folder of the test."""

    folder: Path

    @property
    def module(self) -> Path:
        """Where its go.mod and go.sum are."""
        return self.folder


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalGroup:
    module = tmp_path / "module"
    module.mkdir()
    (module / "go.mod").write_text("module example.test/tool\n\ngo 1.26.0\n\ntool example.test/tool\n")
    (module / "go.sum").write_text("")
    (module / "main.go").write_text(SOURCE)
    monkeypatch.setattr(LocalGroup, "folder", module, raising=False)
    return LocalGroup("tool", rename={"tool": "renamed"})


@pytest.fixture
def progress() -> Progress:
    return Progress(Console(file=io.StringIO()))


def test_a_build_appears_whole_under_the_name_of_its_content(
    group: LocalGroup, tmp_path: Path, progress: Progress
) -> None:
    target = tmp_path / "store" / "tool-1"
    target.parent.mkdir()
    programs.build(group, target, progress)
    assert [path.name for path in target.iterdir()] == ["renamed"]
    assert [path.name for path in target.parent.iterdir()] == ["tool-1"]


def test_a_failed_build_leaves_nothing_and_says_why(group: LocalGroup, tmp_path: Path, progress: Progress) -> None:
    (group.module / "main.go").write_text("package main\n\nfunc main() { missing() }\n")
    store = tmp_path / "store"
    store.mkdir()
    with pytest.raises(NodeError, match=r"(?s)undefined: missing.*building tool ended with 1.*next: "):
        programs.build(group, store / "tool-1", progress)
    assert list(store.iterdir()) == []


def test_a_digest_follows_module_sums_flags_and_go(group: LocalGroup) -> None:
    digests = [programs.digest(group, "go1.26.0"), programs.digest(group, "go1.26.1")]
    digests += [programs.digest(LocalGroup("tool", ldflags="-s"), "go1.26.0")]
    for file in ("go.mod", "go.sum"):
        (group.module / file).write_text((group.module / file).read_text() + "\n")
        digests.append(programs.digest(group, "go1.26.0"))
    assert len(set(digests)) == len(digests)


def test_a_machine_without_go_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NodeError, match=r"Go is not installed.*\n  next: install Go 1\.26"):
        programs.go_version()


def test_a_go_that_is_too_old_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "go"
    old.write_text(
        "#!/bin/sh\necho 'go: go.mod requires go >= 1.26.0 (running go 1.19; GOTOOLCHAIN=local)' >&2; exit 1\n"
    )
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NodeError, match=r"running go 1\.19.*\n  next: install Go 1\.26"):
        programs.go_version()


def test_every_group_pins_its_programs_and_their_sums() -> None:
    settings = Settings.from_environment({})
    for group in programs.groups(settings):
        assert "\ntool " in (group.module / "go.mod").read_text()
        assert (group.module / "go.sum").stat().st_size > 0
    assert {path.name for path in (HERE / "go").iterdir()} >= {group.name for group in programs.groups(settings)}


def test_the_kubernetes_programs_say_the_pinned_version() -> None:
    settings = Settings.from_environment({})
    (kubernetes,) = (group for group in programs.groups(settings) if group.name.startswith("kubernetes-"))
    assert f"gitVersion={programs.kubernetes_version(settings)}" in kubernetes.ldflags
    assert programs.kubernetes_version(settings).startswith(f"v{settings.minor}.")
