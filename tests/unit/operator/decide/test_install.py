"""Packages: the network open for them alone, and proven closed before the claim."""

from dataclasses import replace
from typing import Any

import pytest

from harness.facts import (
    DEPENDENT,
    NOW,
    POD_UID,
    admitted,
    kinds,
    later,
    message,
    pod,
    ready_status,
    reason,
    satisfied,
    step,
    stored,
    view,
    with_pod,
    written,
)
from harness.simulation import make_class, make_task
from sandyard_api.names import NETWORK_CLOSED, NETWORK_INSTALLING
from sandyard_api.wire import InstallPhase, InstallStatus, Package
from sandyard_operator.decide.facts import AgentView, Observed
from sandyard_operator.decide.plan import AwaitInstall, Install, Plan, ProveCut, SetNetwork, StatusStep, WriteStatus
from sandyard_operator.decide.pod import PodView
from sandyard_operator.decide.reconcile import reconcile

MISSING = satisfied("six==1.17.0")
OPEN = pod(network=NETWORK_INSTALLING)
DONE = InstallStatus(
    phase=InstallPhase.SUCCEEDED,
    packages=(Package(name="six", version="1.17.0", sha256="a" * 64),),
    lock_sha256="b" * 64,
)
RUNNING = InstallStatus(phase=InstallPhase.RUNNING)


def dependent(one: PodView | None = None, **heard: Any) -> Observed:
    """Return what is known of a task whose image lacks a package."""
    return with_pod(admitted(make_task(code=DEPENDENT)), one, view(**({"requirements": MISSING} | heard)))


def test_it_is_told_the_network_opened_and_the_install_begun() -> None:
    plan = reconcile(dependent(), NOW)
    assert kinds(plan) == [WriteStatus, SetNetwork, Install]
    assert written(plan)["phase"] == "Installing"
    assert plan.actions[1] == SetNetwork(pod(), NETWORK_INSTALLING)
    assert plan.actions[2] == Install(pod(), ("six==1.17.0",), 180)


def test_it_is_told_once_and_the_network_opened_once() -> None:
    told = dependent()
    again = replace(told, task=stored(told, reconcile(told, NOW)))
    assert kinds(reconcile(again, NOW)) == [SetNetwork, Install]
    assert kinds(reconcile(with_pod(again, OPEN, view(requirements=MISSING)), NOW)) == [Install]


@pytest.mark.parametrize("sandbox_class", [make_class(), None])
def test_a_class_without_an_index_cannot_install(sandbox_class: Any) -> None:
    known = dependent()
    plan = reconcile(replace(known, sandbox_class=sandbox_class), NOW)
    assert reason(plan) == "IndexUnavailable"


def test_a_running_install_is_listened_to() -> None:
    plan = reconcile(dependent(OPEN, install=RUNNING, install_at=NOW), NOW)
    assert plan == Plan(wait=AwaitInstall(POD_UID), due=later(210))


def test_an_install_found_running_after_a_restart_has_its_time_from_now() -> None:
    status = ready_status(install=RUNNING)
    assert reconcile(dependent(OPEN, status=status), NOW).due == later(210)


def test_an_install_that_never_ends_is_ended() -> None:
    plan = reconcile(dependent(OPEN, install=RUNNING, install_at=NOW), later(210))
    assert reason(plan) == "InstallTimeout"


@pytest.mark.parametrize(
    ("told", "end"),
    [
        (
            name,
            name,
        )
        for name in (
            "IndexUnavailable",
            "IndexAuthFailed",
            "DependencyNotFound",
            "NoWheelAvailable",
            "DependencyConflict",
            "HashMismatch",
            "InstallTimeout",
            "InstallFailed",
        )
    ]
    + [("Succeeded", "InstallFailed"), ("", "InstallFailed")],
)
def test_a_failed_install_keeps_its_reason(told: str, end: str) -> None:
    failed = InstallStatus(phase=InstallPhase.FAILED, reason=told, message="it said", stderr="no such thing")
    plan = reconcile(dependent(OPEN, install=failed), NOW)
    assert reason(plan) == end
    assert "did not run" in message(plan)
    assert written(plan)["result"]["stderr"]["text"] == "no such thing"


def test_the_network_is_closed_after_the_install() -> None:
    plan = reconcile(dependent(OPEN, install=DONE), NOW)
    assert plan.actions == (SetNetwork(OPEN, NETWORK_CLOSED),)


@pytest.mark.parametrize("proofs", [0, 1])
def test_the_cut_is_proven_twice(proofs: int) -> None:
    plan = reconcile(dependent(install=DONE, closed_at=NOW, cut_proofs=proofs), NOW)
    assert kinds(plan) == [ProveCut]


def test_a_failed_proof_is_tried_again_in_a_moment() -> None:
    failed = dependent(install=DONE, closed_at=NOW, cut_failed_at=NOW)
    assert reconcile(failed, NOW) == Plan(due=later(0.1))
    assert kinds(reconcile(failed, later(0.1))) == [ProveCut]


def test_a_cut_that_cannot_be_proven_ends_the_task() -> None:
    plan = reconcile(dependent(install=DONE, closed_at=NOW), later(30))
    assert reason(plan) == "IsolationUnavailable"


def test_a_cut_not_yet_timed_is_proven_from_now() -> None:
    assert kinds(reconcile(dependent(install=DONE), NOW)) == [ProveCut]


def test_the_claim_follows_the_proof_and_tells_the_packages() -> None:
    plan = reconcile(dependent(install=DONE, install_at=NOW, closed_at=NOW, cut_proofs=2), later(1))
    status = written(plan)
    assert step(plan) is StatusStep.CLAIM
    assert status["packages"] == [{"name": "six", "version": "1.17.0", "sha256": "a" * 64}]
    assert status["lockSHA256"] == "b" * 64
    assert status["timings"]["installMilliseconds"] == 1000


def test_times_told_at_the_install_stay() -> None:
    told = dependent(ready_at=later(-20))
    task = stored(told, reconcile(told, NOW))
    done = view(requirements=MISSING, install=DONE, install_at=NOW, closed_at=NOW, cut_proofs=2, ready_at=NOW)
    timings = written(reconcile(with_pod(replace(told, task=task), heard=done), later(1)))["timings"]
    assert timings["startMilliseconds"] == 10_000


def test_an_open_network_is_closed_even_where_nothing_is_missing() -> None:
    nothing_missing = view(requirements=satisfied(), install=DONE)
    open_pod = with_pod(admitted(make_task(code=DEPENDENT)), OPEN, nothing_missing)
    assert kinds(reconcile(open_pod, NOW)) == [SetNetwork]


def test_a_view_without_status_or_install_counts_as_not_installed() -> None:
    heard: AgentView = view(requirements=MISSING)
    assert heard.install is None
    assert kinds(reconcile(dependent(), NOW))[-1] is Install
