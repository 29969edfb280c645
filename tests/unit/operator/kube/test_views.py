"""Pods as the core sees them: each fact read off the object as Kubernetes writes it."""

from typing import Any

import pytest

from harness.simulation import make_class, make_task
from sandyard_api import names
from sandyard_operator.decide.pod import ContainerView, PodPhase
from sandyard_operator.kube.authority import Authority
from sandyard_operator.kube.pods import Facts, manifest
from sandyard_operator.kube.views import PodReader


def live(authority: Authority, **status: Any) -> dict[str, Any]:
    """Return a pod as the API server gives it."""
    pod = manifest(make_task(), make_class(), attempt=2, facts=Facts(user_namespace=True), authority=authority)
    pod["metadata"] |= {"uid": "pod-uid", "resourceVersion": "7", "creationTimestamp": "2030-01-01T00:00:01Z"}
    return pod | {"status": status}


def test_fresh_pod(authority: Authority) -> None:
    pod = PodReader(authority).read(live(authority))
    assert (pod.signed, pod.attempt, pod.owner_uid, pod.phase) == (True, 2, "uid-t", PodPhase.PENDING)
    assert (pod.ip, pod.node_name, pod.scheduled, pod.deleting) == ("", "", False, False)
    assert pod.user_namespace
    assert pod.node_ready
    assert pod.network == names.NETWORK_CLOSED
    assert not pod.agent.started


def test_running_pod(authority: Authority) -> None:
    raw = live(
        authority,
        phase="Running",
        podIP="192.0.2.5",
        conditions=[
            {"type": "PodScheduled", "status": "True"},
            {"type": "ContainersReady", "status": "True"},
            {"type": "Ready", "status": "True"},
        ],
        containerStatuses=[
            {"name": "agent", "state": {"running": {}}, "imageID": "i@sha256:aa"},
            {"name": "runner", "state": {"running": {}}, "imageID": "registry.test/runtime@sha256:bb"},
        ],
    )
    raw["spec"]["nodeName"] = "node1"
    pod = PodReader(authority).read(raw)
    assert (pod.ip, pod.node_name, pod.scheduled) == ("192.0.2.5", "node1", True)
    assert pod.image == "registry.test/runtime@sha256:bb"
    assert pod.agent.started
    assert pod.node_ready


def test_image_that_the_node_names_by_an_id_is_told_as_asked_for(authority: Authority) -> None:
    raw = live(authority, containerStatuses=[{"name": "runner", "state": {}, "imageID": "sha256:cc"}])
    assert PodReader(authority).read(raw).image == make_class().spec.image


def test_waiting_and_ended_containers(authority: Authority) -> None:
    pull = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    end = {"terminated": {"exitCode": 137, "signal": 9, "reason": "OOMKilled"}}
    statuses = [{"name": "agent", "state": pull}, {"name": "runner", "state": end}]
    pod = PodReader(authority).read(live(authority, containerStatuses=statuses))
    assert pod.agent == ContainerView(started=False, waiting_reason="ImagePullBackOff", waiting_message="no such image")
    assert pod.runner == ContainerView(started=True, exit_code=137, exit_signal=9, terminated_reason="OOMKilled")


def test_unschedulable(authority: Authority) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    assert PodReader(authority).read(live(authority, conditions=[condition])).unschedulable_message == "0/1 nodes"


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]},
        {"reason": "NodeLost"},
        {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]},
    ],
)
def test_silent_node_is_told(authority: Authority, status: dict[str, Any]) -> None:
    assert not PodReader(authority).read(live(authority, **status)).node_ready


def test_ended_container_is_no_silent_node(authority: Authority) -> None:
    both = [{"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")]
    assert PodReader(authority).read(live(authority, conditions=both)).node_ready


def test_deletion_and_who_asked_for_it(authority: Authority) -> None:
    reader, raw = PodReader(authority), live(authority)
    raw["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:09Z"
    assert not reader.read(raw).deletion_by_operator
    reader.deleted("pod-uid")
    assert reader.read(raw).deletion_by_operator
    assert reader.read(raw).deleting


def test_evicted(authority: Authority) -> None:
    raw = live(authority, phase="Failed", reason="Evicted", message="disk")
    pod = PodReader(authority).read(raw)
    assert (pod.phase, pod.status_reason, pod.status_message) == (PodPhase.FAILED, "Evicted", "disk")


def test_phase_of_a_newer_kubernetes(authority: Authority) -> None:
    assert PodReader(authority).read(live(authority, phase="Dreaming")).phase is PodPhase.UNKNOWN


@pytest.mark.parametrize(
    "owners",
    [
        [],
        [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}],
        [{"apiVersion": "sandyard.dev/v1alpha1", "kind": "SandboxTask", "name": "t", "uid": "u"}],
    ],
)
def test_pod_without_a_task_is_not_ours(authority: Authority, owners: list[dict[str, Any]]) -> None:
    raw = live(authority)
    raw["metadata"]["ownerReferences"] = owners
    pod = PodReader(authority).read(raw)
    assert (pod.owner_uid, pod.signed) == ("", False)


@pytest.mark.parametrize("name", ["other", "sandyard-uid-t", "sandyard-uid-t-0", "sandyard-uid-t-²", "mine-1"])
def test_pod_of_another_name_is_not_ours(authority: Authority, name: str) -> None:
    raw = live(authority)
    raw["metadata"]["name"] = name
    pod = PodReader(authority).read(raw)
    assert (pod.attempt, pod.signed) == (0, False)


@pytest.mark.parametrize("signature", ["", "!", "AAAA", "ä"])
def test_odd_signature_holds_nothing(authority: Authority, signature: str) -> None:
    raw = live(authority)
    raw["metadata"]["annotations"][names.ANNOTATION_SIGNATURE] = signature
    assert not PodReader(authority).read(raw).signed
