"""What stands in a tenant's namespace: made once, read first, put back; and policies of others that open a pod."""

from base64 import b64decode
from typing import Any

import pytest
from cryptography import x509

from harness.api_faults import FaultyApi
from harness.control_plane import ControlPlane
from harness.kube_room import Room, new_task
from sandyard_api import names
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.pod import PodView
from sandyard_operator.kube.policies import egress_name, install_name
from sandyard_operator.kube.resource import POLICIES, SECRETS
from sandyard_operator.kube.tenant import SEEN_SECONDS
from sandyard_operator.ports import ConflictError

NETWORK = {"egress": [{"cidr": "203.0.113.0/24", "ports": [{"port": 443}]}]}


@pytest.fixture
async def pod(plane: ControlPlane, room: Room, namespace: str, sandbox_class: SandboxClass) -> PodView:
    """Create a pod in a prepared namespace."""
    account = {"metadata": {"name": "default"}}
    assert plane.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account).is_success
    task = await new_task(room, namespace, network=NETWORK)
    await room.cluster.prepare_namespace(namespace, sandbox_class)
    return await room.cluster.create_pod(task, sandbox_class, attempt=1)


async def test_prepared_namespace_costs_nothing_more(
    shaky: Room, api: FaultyApi, namespace: str, sandbox_class: SandboxClass
) -> None:
    api.seen.clear()
    await shaky.cluster.prepare_namespace(namespace, sandbox_class)
    made = api.writes
    assert made == 3, "the agents' key and two policies"
    await shaky.cluster.prepare_namespace(namespace, sandbox_class)
    assert sum(api.seen.values()) == 6, "three reads, three writes, and silence"
    shaky.clock.at += SEEN_SECONDS + 1
    await shaky.cluster.prepare_namespace(namespace, sandbox_class)
    assert api.writes == made, "a look is no write"


async def test_new_leader_finds_what_the_old_one_made(
    room: Room, shaky: Room, api: FaultyApi, namespace: str, sandbox_class: SandboxClass
) -> None:
    await room.cluster.prepare_namespace(namespace, sandbox_class)
    await shaky.cluster.prepare_namespace(namespace, sandbox_class)
    assert api.writes == 0


async def test_agent_key_is_for_the_namespace_and_of_the_authority(
    room: Room, namespace: str, sandbox_class: SandboxClass
) -> None:
    await room.cluster.prepare_namespace(namespace, sandbox_class)
    secret = await room.client.get(SECRETS.path(namespace=namespace, name=names.SECRET_AGENT_TLS))
    certificate = x509.load_pem_x509_certificate(b64decode(secret["data"]["tls.crt"]))
    certificate.verify_directly_issued_by(room.authority.ca)
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert alternatives.get_values_for_type(x509.DNSName) == [f"agent.{namespace}.sandyard.internal"]


async def test_removed_policy_is_put_back_within_a_minute(
    room: Room, namespace: str, sandbox_class: SandboxClass
) -> None:
    await room.cluster.prepare_namespace(namespace, sandbox_class)
    path = POLICIES.path(namespace=namespace, name=names.POLICY_ISOLATE)
    await room.client.delete(path, {})
    room.clock.at += SEEN_SECONDS + 1
    await room.cluster.prepare_namespace(namespace, sandbox_class)
    assert (await room.client.get(path))["spec"]["policyTypes"] == ["Ingress", "Egress"]


async def test_policies_of_ours_are_not_foreign(room: Room, pod: PodView) -> None:
    items = [item async for item in room.client.items(POLICIES.path(namespace=pod.namespace))]
    assert {item["metadata"]["name"] for item in items} == {
        names.POLICY_ISOLATE,
        install_name(pod.labels[names.LABEL_CLASS]),
        egress_name(pod.owner_uid),
    }
    assert await room.cluster.foreign_policies(pod) == ()


def _policy(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"podSelector": {}} | spec}


OPENS = [
    _policy("all-out", egress=[{}], policyTypes=["Egress"]),
    _policy("all-in", ingress=[{}], policyTypes=["Ingress"]),
    _policy(
        "by-label",
        podSelector={"matchExpressions": [{"key": "sandyard.dev/role", "operator": "Exists"}]},
        egress=[{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}],
        policyTypes=["Egress"],
    ),
    _policy("sandyard-install-mine", egress=[{}], policyTypes=["Egress"]),
]
HARMLESS = [
    _policy("deny", policyTypes=["Ingress", "Egress"]),
    _policy("others", podSelector={"matchLabels": {"app": "web"}}, egress=[{}], policyTypes=["Egress"]),
]


@pytest.mark.parametrize("policy", OPENS, ids=lambda policy: policy["metadata"]["name"])
async def test_policy_of_others_that_opens_the_pod_is_named(room: Room, pod: PodView, policy: dict[str, Any]) -> None:
    await room.client.create(POLICIES.path(namespace=pod.namespace), policy)
    assert [found.name for found in await room.cluster.foreign_policies(pod)] == [policy["metadata"]["name"]]


@pytest.mark.parametrize("policy", HARMLESS, ids=lambda policy: policy["metadata"]["name"])
async def test_policy_that_opens_nothing_of_ours_is_let_be(room: Room, pod: PodView, policy: dict[str, Any]) -> None:
    await room.client.create(POLICIES.path(namespace=pod.namespace), policy)
    assert await room.cluster.foreign_policies(pod) == ()


async def test_changed_policy_of_ours_is_put_back(room: Room, pod: PodView) -> None:
    for name in (names.POLICY_ISOLATE, egress_name(pod.owner_uid)):
        path = POLICIES.path(namespace=pod.namespace, name=name)
        await room.client.merge(path, {"spec": {"egress": [{}]}})
        with pytest.raises(ConflictError, match=name):
            await room.cluster.foreign_policies(pod)
        assert await room.cluster.foreign_policies(pod) == ()
        assert (await room.client.get(path))["spec"].get("egress") != [{}]


async def test_index_policy_opens_an_installing_pod_and_is_ours(room: Room, pod: PodView) -> None:
    installing = await room.cluster.set_network(pod, names.NETWORK_INSTALLING)
    assert await room.cluster.foreign_policies(installing) == ()
    path = POLICIES.path(namespace=pod.namespace, name=install_name(pod.labels[names.LABEL_CLASS]))
    await room.client.merge(path, {"spec": {"egress": [{}]}})
    with pytest.raises(ConflictError, match=names.POLICY_INSTALL_PREFIX):
        await room.cluster.foreign_policies(installing)
    assert (await room.client.get(path))["spec"]["egress"] != [{}]


async def test_egress_policy_of_a_task_that_asked_for_none_is_foreign(
    room: Room, pod: PodView, sandbox_class: SandboxClass
) -> None:
    quiet = await new_task(room, pod.namespace)
    closed = await room.cluster.create_pod(quiet, sandbox_class, attempt=1)
    policy = _policy(egress_name(quiet.metadata.uid), egress=[{}], policyTypes=["Egress"])
    owner = {"apiVersion": "sandyard.dev/v1alpha1", "kind": "SandboxTask", "name": quiet.metadata.name}
    policy["metadata"]["ownerReferences"] = [owner | {"uid": quiet.metadata.uid}]
    await room.client.create(POLICIES.path(namespace=pod.namespace), policy)
    assert [found.name for found in await room.cluster.foreign_policies(closed)] == [egress_name(quiet.metadata.uid)]


async def test_egress_policy_goes_with_its_task(room: Room, pod: PodView) -> None:
    path = POLICIES.path(namespace=pod.namespace, name=egress_name(pod.owner_uid))
    owners = (await room.client.get(path))["metadata"]["ownerReferences"]
    assert [owner["uid"] for owner in owners] == [pod.owner_uid]


async def test_task_without_network_gets_no_policy(room: Room, task: SandboxTask, sandbox_class: SandboxClass) -> None:
    await room.cluster.prepare_namespace(task.metadata.namespace, sandbox_class)
    names_there = [
        item["metadata"]["name"] async for item in room.client.items(POLICIES.path(namespace=task.metadata.namespace))
    ]
    assert egress_name(task.metadata.uid) not in names_there
