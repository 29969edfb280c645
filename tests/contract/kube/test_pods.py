"""Pods on a real API server: accepted as restricted, signed, adopted only when genuine, flipped and deleted."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import pytest

from harness.api_faults import CUT_AFTER_COMMIT, FaultyApi
from harness.control_plane import ControlPlane
from harness.kube_room import Room, new_task
from sandyard_api import names
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.pod import RefusalKind, pod_name
from sandyard_operator.kube.pods import Facts, manifest
from sandyard_operator.kube.resource import PODS
from sandyard_operator.ports import AlreadyExistsError, ConflictError, NotFoundError, RefusedError, UnsureError

RESTRICTED = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}


@pytest.fixture(autouse=True)
def restricted(plane: ControlPlane, namespace: str) -> None:
    """Have the namespace enforce Pod Security, and give it the account that pods run as."""
    assert plane.request("PATCH", f"/api/v1/namespaces/{namespace}", RESTRICTED).is_success
    account = {"metadata": {"name": "default"}}  # nothing makes it where no controller runs
    assert plane.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account).is_success


async def test_created_pod_is_signed_and_reads_as_it_was_made(
    room: Room, task: SandboxTask, sandbox_class: SandboxClass
) -> None:
    pod = await room.cluster.create_pod(task, sandbox_class, attempt=1)
    assert pod.signed
    assert (pod.name, pod.owner_uid, pod.attempt) == (pod_name(task.metadata.uid, 1), task.metadata.uid, 1)
    assert pod.network == names.NETWORK_CLOSED
    assert await room.cluster.get_pod(pod.namespace, pod.name) == pod
    assert pod in await room.cluster.list_pods()


@pytest.mark.parametrize("user_namespace", [True, False])
async def test_admission_defaults_leave_the_signature_alone(
    room: Room, task: SandboxTask, sandbox_class: SandboxClass, *, user_namespace: bool
) -> None:
    facts = Facts(user_namespace=user_namespace)
    made = manifest(task, sandbox_class, attempt=3, facts=facts, authority=room.authority)
    live = await room.client.create(PODS.path(namespace=task.metadata.namespace), made)
    assert live["spec"] != made["spec"], "the API server fills in a lot"
    assert room.reader.read(live).signed


async def test_second_create_meets_the_first(room: Room, task: SandboxTask, sandbox_class: SandboxClass) -> None:
    first = await room.cluster.create_pod(task, sandbox_class, attempt=1)
    with pytest.raises(AlreadyExistsError):
        await room.cluster.create_pod(task, sandbox_class, attempt=1)
    found = await room.cluster.get_pod(first.namespace, first.name)
    assert found is not None
    assert (found.uid, found.signed) == (first.uid, True)


async def test_create_whose_answer_is_lost_is_found_by_name(
    shaky: Room, api: FaultyApi, room: Room, task: SandboxTask, sandbox_class: SandboxClass
) -> None:
    api.next(CUT_AFTER_COMMIT, verb="POST", path="/pods")
    with pytest.raises(UnsureError):
        await shaky.cluster.create_pod(task, sandbox_class, attempt=1)
    found = await room.cluster.get_pod(task.metadata.namespace, pod_name(task.metadata.uid, 1))
    assert found is not None
    assert found.signed


def _other_image(pod: dict[str, Any]) -> None:
    pod["spec"]["containers"][0]["image"] = "registry.invalid/mine:1"


def _other_command(pod: dict[str, Any]) -> None:
    pod["spec"]["containers"][0]["command"] = ["/bin/sleep", "1000"]


def _other_owner(pod: dict[str, Any]) -> None:
    pod["metadata"]["ownerReferences"][0]["uid"] = "5d0a9b7e-0000-4000-8000-000000000000"


def _more_containers(pod: dict[str, Any]) -> None:
    pod["spec"]["containers"].append(pod["spec"]["containers"][0] | {"name": "third"})


def _init_container(pod: dict[str, Any]) -> None:
    pod["spec"]["initContainers"] = [pod["spec"]["containers"][0] | {"name": "first"}]


def _shared_processes(pod: dict[str, Any]) -> None:
    pod["spec"]["shareProcessNamespace"] = True


def _own_volume(pod: dict[str, Any]) -> None:
    pod["spec"]["volumes"][0] = {"name": "control", "persistentVolumeClaim": {"claimName": "mine"}}


def _service_account(pod: dict[str, Any]) -> None:
    pod["spec"]["automountServiceAccountToken"] = True


def _other_keys(pod: dict[str, Any]) -> None:
    pod["spec"]["containers"][0]["env"][1]["value"] = "bWluZQ=="


def _no_signature(pod: dict[str, Any]) -> None:
    del pod["metadata"]["annotations"][names.ANNOTATION_SIGNATURE]


def _writable_control(pod: dict[str, Any]) -> None:
    del pod["spec"]["containers"][1]["volumeMounts"][0]["readOnly"]


def _other_attempt(pod: dict[str, Any]) -> None:
    pod["metadata"]["name"] = pod["metadata"]["name"][:-1] + "2"


@pytest.mark.parametrize(
    "forge",
    [
        _other_image,
        _other_command,
        _other_owner,
        _more_containers,
        _init_container,
        _shared_processes,
        _own_volume,
        _service_account,
        _other_keys,
        _no_signature,
        _writable_control,
        _other_attempt,
    ],
)
async def test_forged_pod_is_not_taken_for_ours(
    room: Room, task: SandboxTask, sandbox_class: SandboxClass, forge: Any
) -> None:
    facts = Facts(user_namespace=False)
    pod = manifest(task, sandbox_class, attempt=1, facts=facts, authority=room.authority)
    forge(pod)
    live = await room.client.create(PODS.path(namespace=task.metadata.namespace), pod)
    assert not room.reader.read(live).signed


async def test_flip_is_a_compare_and_swap(room: Room, task: SandboxTask, sandbox_class: SandboxClass) -> None:
    closed = await room.cluster.create_pod(task, sandbox_class, attempt=1)
    opened = await room.cluster.set_network(closed, names.NETWORK_INSTALLING)
    assert (opened.network, opened.signed) == (names.NETWORK_INSTALLING, True)
    again = await room.cluster.set_network(opened, names.NETWORK_CLOSED)
    assert again.network == names.NETWORK_CLOSED
    with pytest.raises(ConflictError):
        await room.cluster.set_network(closed, names.NETWORK_INSTALLING)


async def test_delete_hits_only_that_very_pod(room: Room, task: SandboxTask, sandbox_class: SandboxClass) -> None:
    first = await room.cluster.create_pod(task, sandbox_class, attempt=1)
    await room.cluster.delete_pod(first)
    assert await room.cluster.get_pod(first.namespace, first.name) is None
    second = await room.cluster.create_pod(task, sandbox_class, attempt=1)
    await room.cluster.delete_pod(first)
    found = await room.cluster.get_pod(second.namespace, second.name)
    assert found is not None
    assert (found.uid, found.deletion_by_operator) == (second.uid, False)


async def test_pod_changed_by_an_admission_is_refused_and_removed(
    room: Room, task: SandboxTask, sandbox_class: SandboxClass, plane: ControlPlane
) -> None:
    """Stand in for a sidecar injector: a policy that puts host aliases into each new pod."""
    policy = {
        "metadata": {"name": "injector"},
        "spec": {
            "reinvocationPolicy": "Never",
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": task.metadata.namespace}},
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
                ],
            },
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": "Object{spec: Object.spec{enableServiceLinks: true}}"},
                }
            ],
        },
    }
    base = "/apis/admissionregistration.k8s.io/v1"
    binding = {"metadata": {"name": "injector"}, "spec": {"policyName": "injector"}}
    assert plane.request("POST", f"{base}/mutatingadmissionpolicies", policy).is_success
    assert plane.request("POST", f"{base}/mutatingadmissionpolicybindings", binding).is_success
    try:
        refused = await _until_refused(room, task, sandbox_class)
    finally:
        plane.request("DELETE", f"{base}/mutatingadmissionpolicybindings/injector")
        plane.request("DELETE", f"{base}/mutatingadmissionpolicies/injector")
    assert refused.kind is RefusalKind.ADMISSION
    assert "enableServiceLinks" in str(refused)
    left = [
        pod for pod in await room.cluster.list_pods() if pod.namespace == task.metadata.namespace and not pod.signed
    ]
    assert left == []


async def _until_refused(room: Room, task: SandboxTask, sandbox_class: SandboxClass) -> RefusedError:
    for attempt in range(1, 200):  # the API server takes a new policy up within a second or two
        try:
            await room.cluster.create_pod(task, sandbox_class, attempt=attempt)
        except RefusedError as error:
            return error
    raise AssertionError("the policy never came into force")


@dataclass(frozen=True, slots=True)
class Case:
    """A task's memory, what others hold of a quota of 1100Mi, and what the refusal is."""

    memory: str
    used: str
    kind: RefusalKind


@pytest.mark.parametrize(
    "case",
    [Case("500Mi", "400Mi", RefusalKind.QUOTA_TAKEN), Case("900Mi", "0", RefusalKind.QUOTA_TOO_SMALL)],
    ids=lambda case: str(case.kind),
)
async def test_quota_taken_is_told_from_quota_too_small(
    room: Room, namespace: str, sandbox_class: SandboxClass, plane: ControlPlane, case: Case
) -> None:
    path, hard = f"/api/v1/namespaces/{namespace}/resourcequotas", {"limits.memory": "1100Mi"}
    assert plane.request("POST", path, {"metadata": {"name": "q"}, "spec": {"hard": hard}}).is_success
    status = {"status": {"hard": hard, "used": {"limits.memory": case.used}}}
    assert plane.request("PATCH", f"{path}/q/status", status).is_success
    task = await new_task(room, namespace, resources={"limits": {"memory": case.memory}})
    with pytest.raises(RefusedError) as caught:
        await room.cluster.create_pod(task, sandbox_class, attempt=1)
    assert caught.value.kind is case.kind, str(caught.value)


async def test_limit_range_is_an_admission(
    room: Room, task: SandboxTask, sandbox_class: SandboxClass, plane: ControlPlane
) -> None:
    path = f"/api/v1/namespaces/{task.metadata.namespace}/limitranges"
    limit = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"memory": "64Mi"}}]}}
    assert plane.request("POST", path, limit).is_success
    with pytest.raises(RefusedError, match="maximum memory usage per Container") as caught:
        await room.cluster.create_pod(task, sandbox_class, attempt=1)
    assert caught.value.kind is RefusalKind.ADMISSION


async def test_ending_namespace_is_told(
    room: Room, task: SandboxTask, sandbox_class: SandboxClass, plane: ControlPlane
) -> None:
    path = f"/api/v1/namespaces/{task.metadata.namespace}"
    assert plane.request("DELETE", path).status_code == HTTPStatus.OK
    with pytest.raises(RefusedError) as caught:
        await room.cluster.create_pod(task, sandbox_class, attempt=1)
    assert caught.value.kind is RefusalKind.NAMESPACE_ENDING


async def test_namespace_that_is_not_there_is_not_found(
    room: Room, task: SandboxTask, sandbox_class: SandboxClass
) -> None:
    elsewhere = task.metadata.model_copy(update={"namespace": "nowhere"})
    with pytest.raises(NotFoundError):
        await room.cluster.create_pod(task.model_copy(update={"metadata": elsewhere}), sandbox_class, attempt=1)
