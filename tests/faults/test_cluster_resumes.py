"""Our own cluster can be killed at any instant and brought up again, and ``down`` leaves nothing.

A second cluster with a name and a range of its own, beside the one that other tests use; this also proves that two do
not touch each other. Needs root and the programs that ``make cluster`` builds.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandyard_node import canary, host, network
from sandyard_node.cgroups import Cgroup
from sandyard_node.errors import NodeError
from sandyard_node.images import busybox
from sandyard_node.kubectl import Kubectl
from sandyard_node.settings import HERE, Settings

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600), pytest.mark.usefixtures("spare")]

PARAMETERS = {"SANDYARD_NODE_NAME": "spare", "SANDYARD_NODE_RANGE": "198.18.192.0/18", "PROVIDER": "node"}
SEED = 20260117
KILLS = 8
LONGEST_LIFE_SECONDS = 9.0  # a first start takes about 15
UP_SECONDS = 300


@pytest.fixture(scope="module")
def spare() -> Iterator[Settings]:
    settings = Settings.from_environment({**os.environ, **PARAMETERS})
    run("down", "--purge")
    yield settings
    run("down", "--purge")


def start(*command: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **PARAMETERS, "PYTHONPATH": str(HERE)}
    return subprocess.Popen(
        [sys.executable, "-m", "sandyard_node", *command],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def run(*command: str) -> str:
    with start(*command) as process:
        output, _ = process.communicate(timeout=UP_SECONDS)
    assert process.returncode == 0, output
    return output


def kill_after(seconds: float, *command: str) -> bool:
    """Kill the tool after a time, as the machine's end would; tell whether it was still at work."""
    with start(*command) as process:
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            return True
    return False


def status() -> dict[str, Any]:
    with start("status") as process:
        output, _ = process.communicate(timeout=60)
    found: dict[str, Any] = json.loads(output)
    return found


def left_by(settings: Settings) -> list[str]:
    """Return everything on the machine that only a running cluster should have."""
    cgroup = Cgroup.find(settings.cgroup)
    found = [str(root / settings.cgroup) for root in cgroup.roots if (root / settings.cgroup).exists()]
    found += [f"process {pid}" for pid in cgroup.all_pids()]
    found += host.mounts(settings.mount) + host.mounts(settings.state)
    found += [str(path) for path in network.NAMESPACES.glob(f"{settings.name}-*")]
    routes = subprocess.run(["ip", "route"], text=True, capture_output=True, check=True).stdout
    found += [line for line in routes.splitlines() if settings.node(1).interface in line.split()]
    return found


def test_killed_at_any_instant_it_comes_up_the_next_time(spare: Settings) -> None:
    instants = random.Random(SEED)  # noqa: S311 - a repeatable choice, no secret
    interrupted = [kill_after(instants.uniform(0.3, LONGEST_LIFE_SECONDS), "up") for _ in range(KILLS)]
    assert any(interrupted)
    run("up")
    now = status()
    assert now["ready"]
    assert all(now["daemons"].values())
    pids = Cgroup.find(f"{spare.cgroup}/daemons").all_pids()
    names = [Path(f"/proc/{pid}/exe").resolve().name for pid in pids]
    for daemon in now["daemons"]:
        assert names.count(daemon.partition("-")[2]) == 1, names


def test_a_second_up_leaves_every_daemon_as_it_is(spare: Settings) -> None:
    run("up")
    before = status()["daemons"]
    started = time.monotonic()
    run("up")
    assert time.monotonic() - started < 30
    assert status()["daemons"] == before
    assert spare.kubeconfig.exists()


@pytest.mark.parametrize(
    "programs", [("kubelet",), ("etcd", "kube-apiserver", "kube-scheduler", "containerd", "kubelet", "kube-router")]
)
def test_daemons_that_died_are_started_and_the_others_stay(programs: tuple[str, ...]) -> None:
    run("up")
    before = status()["daemons"]
    killed = {f"node1-{program}" for program in programs}
    for name in killed:
        os.kill(before[name], signal.SIGKILL)
    run("up")
    after = status()
    assert after["ready"]
    assert {name for name, pid in after["daemons"].items() if pid != before[name]} == killed


def test_the_canary_notices_when_nothing_enforces_policies(spare: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    run("up")
    monkeypatch.setattr(canary, "ENFORCED_SECONDS", 5)
    os.kill(status()["daemons"]["node1-kube-router"], signal.SIGKILL)
    kubectl = Kubectl(spare.bin / "kubectl", spare.kubeconfig)
    with pytest.raises(NodeError, match="a pod that NetworkPolicy denies is kept out: not within 5 s"):
        canary.prove(kubectl, image=busybox().reference)
    assert not status()["ready"]


def test_a_second_node_joins_and_is_proved() -> None:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("NODES", "2")
        run("up")
    now = status()
    assert now["ready"]
    assert [node["name"] for node in now["nodes"]] == ["node1", "node2"]


def test_down_leaves_nothing_also_when_it_was_killed_before(spare: Settings) -> None:
    run("up")
    for seconds in (0.2, 0.3, 0.5):
        kill_after(seconds, "down")
    run("down")
    assert left_by(spare) == []
    (network.NAMESPACES / spare.node(1).namespace).touch()  # what is left when `ip netns add` is killed
    run("up")
    assert status()["ready"]
    run("down")
    assert left_by(spare) == []
