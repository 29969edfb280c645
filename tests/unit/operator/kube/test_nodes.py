"""Which nodes a class's pods may be on, and whether all of them can give user namespaces."""

from typing import Any

import pytest

from harness.simulation import make_class
from sandyard_operator.kube.nodes import Node, lacking_user_namespaces, nodes_of, read_node, user_namespace

ABLE = [{"name": "", "features": {"userNamespaces": True}}, {"name": "gvisor", "features": {}}]
UNABLE = [{"name": "", "features": {"recursiveReadOnlyMounts": True}}]


def node(name: str = "n", *, handlers: Any = ABLE, **spec: Any) -> Node:
    labels = spec.pop("labels", {"pool": "a"})
    return read_node(
        {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"runtimeHandlers": handlers}}
    )


@pytest.mark.parametrize(
    ("mode", "nodes", "expected"),
    [
        ("Preferred", [node()], True),
        ("Preferred", [node(), node("old", handlers=UNABLE)], False),
        ("Preferred", [node(), node("old", handlers=None)], False),
        ("Preferred", [node(), node("old", handlers=UNABLE, unschedulable=True)], True),
        ("Preferred", [node(), node("old", handlers=UNABLE, labels={})], True),
        ("Preferred", [], False),
        ("Required", [node(handlers=UNABLE)], True),
        ("Off", [node()], False),
    ],
)
def test_user_namespaces(mode: str, nodes: list[Node], expected: object) -> None:
    spec = make_class(userNamespaces=mode, nodeSelector={"pool": "a"}).spec
    assert user_namespace(spec, nodes) is expected


def test_runtime_class_is_looked_up_by_its_name() -> None:
    spec = make_class(runtimeClassName="gvisor").spec
    assert lacking_user_namespaces(spec, [node()]) == ("n",)


@pytest.mark.parametrize(
    ("tolerations", "placed"),
    [
        ([], False),
        ([{"key": "k", "operator": "Exists"}], True),
        ([{"key": "k", "value": "v"}], True),
        ([{"key": "k", "value": "w"}], False),
        ([{"key": "k", "operator": "Exists", "effect": "NoExecute"}], False),
        ([{"operator": "Exists"}], True),
        ([{"key": "other", "operator": "Exists"}], False),
    ],
)
def test_taints_keep_pods_out(tolerations: list[dict[str, Any]], placed: object) -> None:
    tainted = node(taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    assert bool(nodes_of(make_class(tolerations=tolerations).spec, [tainted])) is placed


def test_soft_taint_keeps_nobody_out() -> None:
    soft = node(taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    assert nodes_of(make_class().spec, [soft]) == (soft,)


def test_addresses_and_ranges_are_read() -> None:
    raw = {
        "metadata": {"name": "n"},
        "spec": {"podCIDRs": ["10.1.0.0/24", "2001:db8::/64"]},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": "n"}],
        },
    }
    found = read_node(raw)
    assert (found.addresses, found.pod_cidrs) == (("192.0.2.1",), ("10.1.0.0/24", "2001:db8::/64"))
