"""The pod's manifest: what it is made of, whole, and what no user's text can change."""

import json
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.simulation import make_class, make_task
from sandyard_api import names
from sandyard_operator.kube.authority import Authority
from sandyard_operator.kube.pods import Facts, manifest

PLAIN = Facts(user_namespace=False)
EVERYTHING: dict[str, Any] = {
    "imagePolicy": "AllowTag",
    "image": "localhost/runtime:1",
    "imagePullPolicy": "Never",
    "imagePullSecrets": [{"name": "pull"}],
    "nodeSelector": {"pool": "sandboxes"},
    "tolerations": [{"key": "sandboxes", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}]
            }
        }
    },
    "priorityClassName": "low",
    "runtimeClassName": "gvisor",
    "podMetadata": {"labels": {"team": "data"}, "annotations": {"example.test/note": "text"}},
    "userNamespaces": "Required",
}


def test_smallest_pod(authority: Authority, snapshot: SnapshotAssertion) -> None:
    assert manifest(make_task(), make_class(), attempt=1, facts=PLAIN, authority=authority) == snapshot


def test_pod_with_all_that_a_class_can_say(authority: Authority, snapshot: SnapshotAssertion) -> None:
    facts = Facts(user_namespace=True, nodes_without=("old-node",))
    task = make_task(
        resources={
            "requests": {"cpu": "250m", "memory": "1Gi", "ephemeral-storage": "10Mi"},
            "limits": {"cpu": "2", "memory": "2Gi", "ephemeral-storage": "32Mi"},
        }
    )
    assert manifest(task, make_class(**EVERYTHING), attempt=2, facts=facts, authority=authority) == snapshot


def test_same_inputs_give_the_same_pod(authority: Authority) -> None:
    made = [manifest(make_task(), make_class(), attempt=1, facts=PLAIN, authority=authority) for _ in range(2)]
    assert made[0] == made[1]


def test_no_text_of_the_user_reaches_the_pod(authority: Authority) -> None:
    text = "$(SANDYARD_POD_UID)"
    task = make_task(
        code=f"print('{text}')",
        args=[text],
        stdin=text,
        env=[{"name": "A", "value": text}],
        files=[{"path": text, "configMapKeyRef": {"name": "c", "key": "k"}}],
    )
    made = manifest(task, make_class(), attempt=1, facts=PLAIN, authority=authority)
    assert made == manifest(make_task(), make_class(), attempt=1, facts=PLAIN, authority=authority)
    assert "$(" not in json.dumps(made)


@pytest.mark.parametrize(
    ("index", "network", "policy"),
    [
        (None, None, "None"),
        ({"url": "https://192.0.2.7/simple/"}, None, "None"),
        ({"url": "https://[2001:db8::7]:8443/simple/"}, None, "None"),
        ({"url": "https://index.test/simple/"}, None, "ClusterFirst"),
        (None, {"egress": [{"cidr": "192.0.2.0/24"}]}, "None"),
        (None, {"dns": True}, "ClusterFirst"),
    ],
)
def test_dns_is_there_only_where_it_is_needed(authority: Authority, index: Any, network: Any, policy: str) -> None:
    sandbox_class = make_class(index=index) if index else make_class()
    task = make_task(network=network) if network else make_task()
    made = manifest(task, sandbox_class, attempt=1, facts=PLAIN, authority=authority)
    assert made["spec"]["dnsPolicy"] == policy


def test_only_the_agent_mounts_what_is_the_agents(authority: Authority) -> None:
    made = manifest(make_task(), make_class(), attempt=1, facts=PLAIN, authority=authority)
    agent, runner = (
        {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
        for container in made["spec"]["containers"]
    )
    assert runner.keys() & agent.keys() == {names.CONTROL_DIR, names.PACKAGES_DIR, names.TMP_DIR}
    assert runner[names.CONTROL_DIR]
    assert runner[names.PACKAGES_DIR]
    tmp = {
        container["name"]: mount["name"]
        for container in made["spec"]["containers"]
        for mount in container["volumeMounts"]
        if mount["mountPath"] == names.TMP_DIR
    }
    assert tmp == {"agent": "agent-tmp", "runner": "tmp"}


def test_kubelet_bounds_lie_above_the_runners_own(authority: Authority) -> None:
    made = manifest(make_task(), make_class(), attempt=1, facts=PLAIN, authority=authority)
    disk = 2**30
    runner = made["spec"]["containers"][1]["resources"]
    assert int(runner["limits"]["ephemeral-storage"]) == 2 * disk
    assert runner["requests"]["ephemeral-storage"] == "64Mi", "what is a limit must not be set aside"
    sizes = {v["name"]: int(v["emptyDir"]["sizeLimit"]) for v in made["spec"]["volumes"] if "emptyDir" in v}
    assert sizes["workspace"] == 2 * disk


def test_next_attempt_is_another_pod_with_another_signature(authority: Authority) -> None:
    one, two = (
        manifest(make_task(), make_class(), attempt=n, facts=PLAIN, authority=authority)["metadata"] for n in (1, 2)
    )
    assert one["name"] != two["name"]
    signature = names.ANNOTATION_SIGNATURE
    assert one["annotations"][signature] != two["annotations"][signature]
