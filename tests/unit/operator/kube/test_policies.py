"""Network policies: what they are, whole, and what of a wish is cut out of them."""

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from sandyard_api.network import Network
from sandyard_api.sandbox_class import Index
from sandyard_operator.kube.policies import ClusterRanges, Neighbours, egress, install, is_address, isolate, opens

HOME = Neighbours(namespace="sandyard-system")
OUTSIDE = Neighbours(namespace="sandyard-system", operator_cidrs=("192.0.2.9/32",), dns_namespace="dns")
RANGES = ClusterRanges.of(["198.51.100.7", "198.51.100.128/26", "2001:db8:1::/64", "node1", "10.0.0.0/8"])
LABELS = {"sandyard.dev/role": "task", "team": "data"}


def test_isolation(snapshot: SnapshotAssertion) -> None:
    assert isolate(HOME) == snapshot
    assert isolate(OUTSIDE) == snapshot


@pytest.mark.parametrize(
    "index",
    [
        {"url": "https://192.0.2.7/simple/"},
        {"url": "http://192.0.2.7:8080/simple/", "egress": {"cidrs": ["192.0.2.0/24"]}},
        {"url": "https://index.test/simple/"},
        {
            "url": "http://index.home.svc:8080/simple/",
            "egress": {
                "podSelector": {"matchLabels": {"app": "index"}},
                "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
                "ports": [{"port": 8080}],
            },
        },
        {"url": "http://index.home.svc/simple/", "egress": {"podSelector": {"matchLabels": {"app": "index"}}}},
    ],
    ids=["address", "ranges", "name", "pods", "pods-anywhere"],
)
def test_install(index: dict[str, Any], snapshot: SnapshotAssertion) -> None:
    assert install("default", Index.model_validate(index), HOME) == snapshot


@pytest.mark.parametrize(
    "network",
    [
        {"egress": [{"cidr": "203.0.113.0/24"}]},
        {"egress": [{"cidr": "198.51.100.0/24", "except": ["198.51.100.64/26"], "ports": [{"port": 443}]}]},
        {"egress": [{"cidr": "0.0.0.0/0", "ports": [{"protocol": "UDP", "port": 5000, "endPort": 5010}]}]},
        {"egress": [{"cidr": "::/0"}]},
        {"egress": [{"cidr": "198.51.100.7/32"}, {"cidr": "169.254.169.254/32"}, {"cidr": "10.1.0.0/16"}]},
        {"dns": True},
    ],
    ids=["plain", "holes", "everything", "everything-6", "only-forbidden", "dns"],
)
def test_egress(network: dict[str, Any], snapshot: SnapshotAssertion) -> None:
    assert egress("uid-1", Network.model_validate(network), neighbours=HOME, ranges=RANGES) == snapshot


def test_names_are_no_ranges() -> None:
    assert ClusterRanges.of(["node1", ""]).networks == ()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"podSelector": {}, "egress": [{}]}, True),
        ({"podSelector": {}, "ingress": [{"from": []}]}, True),
        ({"podSelector": {}}, False),
        ({"podSelector": {}, "egress": [], "ingress": None}, False),
        ({"podSelector": {"matchLabels": {"team": "web"}}, "egress": [{}]}, False),
        ({"podSelector": {"matchLabels": {"team": "data"}}, "egress": [{}]}, True),
        ({"podSelector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, "egress": [{}]}, True),
        ({"podSelector": {"matchExpressions": [{"key": "x", "operator": "Newer"}]}, "egress": [{}]}, True),
    ],
)
def test_opening_is_told(spec: dict[str, Any], expected: object) -> None:
    assert opens({"spec": spec}, LABELS) is expected


@pytest.mark.parametrize(("host", "expected"), [("192.0.2.1", True), ("2001:db8::1", True), ("index", False)])
def test_address_is_told_from_name(host: str, expected: object) -> None:
    assert is_address(host) is expected
