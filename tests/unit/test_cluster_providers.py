"""kind is chosen where Docker and kind work, our own node elsewhere, and PROVIDER insists."""

import json
from pathlib import Path

import pytest

from sandyard_node import kind
from sandyard_node.cluster import Cluster
from sandyard_node.errors import NodeError
from sandyard_node.kind import KindCluster
from sandyard_node.progress import Progress
from sandyard_node.providers import choose
from sandyard_node.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_environment({"SANDYARD_CACHE": str(tmp_path / "cache"), "NODES": "2"})


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a PATH with nothing but what a test puts there, and a record of calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return folder


def put(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "$CALLS"\n{script}\n')
    (folder / name).chmod(0o755)


def put_all(folder: Path, *, kind_version: str = "kind v0.33.0 go1.26 linux/amd64", docker: str = "exit 0") -> None:
    put(folder, "docker", docker)
    put(folder, "kind", f'[ "$1" = version ] && echo "{kind_version}"; exit 0')
    put(folder, "kubectl", "exit 0")


def test_kind_is_chosen_where_docker_and_kind_work(settings: Settings, programs: Path) -> None:
    put_all(programs)
    assert isinstance(choose(settings, Progress(), {}), KindCluster)


def test_a_node_of_our_own_that_runs_stays_the_choice(settings: Settings, programs: Path) -> None:
    put_all(programs)
    settings.state.mkdir(parents=True)
    (settings.state / "boot").write_text("id")
    assert isinstance(choose(settings, Progress(), {}), Cluster)


@pytest.mark.parametrize(
    ("docker", "version", "reason"),
    [
        ("exit 1", "kind v0.33.0", "the Docker daemon cannot be reached"),
        ("exit 0", "kind v0.23.0", r"kind is older than v0\.24"),
        ("exit 0", "nonsense", r"kind is older than v0\.24"),
    ],
)
def test_where_kind_does_not_work_a_node_of_our_own_is_chosen(
    settings: Settings, programs: Path, docker: str, version: str, reason: str
) -> None:
    put_all(programs, kind_version=version, docker=docker)
    assert isinstance(choose(settings, Progress(), {}), Cluster)
    with pytest.raises(NodeError, match=rf"{reason}.*\n  next: PROVIDER=node"):
        choose(settings, Progress(), {"PROVIDER": "kind"}).up()


def test_nothing_installed_is_no_kind(settings: Settings, programs: Path) -> None:
    assert kind.why_not() == "docker is not installed."
    assert isinstance(choose(settings, Progress(), {}), Cluster)
    assert list(programs.iterdir()) == []


def test_provider_node_insists(settings: Settings, programs: Path) -> None:
    put_all(programs)
    assert isinstance(choose(settings, Progress(), {"PROVIDER": "node"}), Cluster)


def test_an_unknown_provider_is_refused(settings: Settings) -> None:
    with pytest.raises(NodeError, match=r"'minikube' is none of kind, node"):
        choose(settings, Progress(), {"PROVIDER": "minikube"})


def test_kind_loads_archives_into_its_own_cluster(settings: Settings, programs: Path, tmp_path: Path) -> None:
    put_all(programs)
    KindCluster(settings, Progress()).load_image(tmp_path / "image.tar")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == [f"kind load image-archive --name {settings.name} {tmp_path}/image.tar"]


def test_kinds_status_is_ready_when_each_node_is(settings: Settings, programs: Path) -> None:
    node = {
        "metadata": {"name": "n"},
        "status": {
            "nodeInfo": {"kubeletVersion": "v1.37.0"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    put(programs, "kind", f"echo {settings.name}")
    put(programs, "kubectl", f"echo '{json.dumps({'items': [node]})}'")
    status = KindCluster(settings, Progress()).status()
    assert (status["ready"], status["kubernetes"]) == (True, "v1.37.0")
