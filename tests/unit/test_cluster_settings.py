"""The cluster tool reads its parameters, plans addresses and refuses what cannot work."""

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from sandyard_node.addresses import DEFAULT_RANGE, Addresses
from sandyard_node.errors import NodeError
from sandyard_node.settings import MAX_NODES, Settings


def test_one_range_holds_host_nodes_pods_and_services_apart() -> None:
    plan = Addresses.parse(DEFAULT_RANGE)
    assert plan.host == IPv4Address("198.18.0.1")
    assert plan.node(2) == IPv4Address("198.18.0.3")
    assert plan.pods_of(2) == IPv4Network("198.18.17.0/24")
    assert plan.api_service == IPv4Address("198.18.32.1")
    nodes = IPv4Network("198.18.0.0/24")
    for network in (nodes, plan.pods, plan.services):
        assert network.subnet_of(plan.whole)
    assert not plan.pods.overlaps(plan.services)
    assert not nodes.overlaps(plan.pods)
    assert all(plan.pods_of(number).subnet_of(plan.pods) for number in range(1, MAX_NODES + 1))


def test_two_clusters_of_different_ranges_share_no_address() -> None:
    assert not Addresses.parse("198.18.0.0/18").whole.overlaps(Addresses.parse("198.18.64.0/18").whole)


@pytest.mark.parametrize("text", ["198.18.0.0/17", "198.18.0.1/18", "ten", ""])
def test_a_range_that_is_none_is_refused_with_the_next_step(text: str) -> None:
    with pytest.raises(NodeError, match=r"SANDYARD_NODE_RANGE.*\n  next: give "):
        Addresses.parse(text)


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"SANDYARD_CACHE": "/c"}, "/c/node"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/sandyard/node"),
        ({"XDG_CACHE_HOME": "/x", "SANDYARD_CACHE": "/c"}, "/c/node"),
        ({}, str(Path.home() / ".cache" / "sandyard" / "node")),
    ],
)
def test_the_cache_folder_is_the_users(variables: dict[str, str], folder: str) -> None:
    assert Settings.from_environment(variables).cache == Path(folder)


@pytest.mark.parametrize("name", ["", "UPPER", "1st", "a-b", "a" * 10, "../up"])
def test_a_name_that_cannot_be_an_interface_is_refused(name: str) -> None:
    with pytest.raises(NodeError, match="SANDYARD_NODE_NAME"):
        Settings.from_environment({"SANDYARD_NODE_NAME": name})


def test_the_longest_name_makes_an_interface_the_kernel_takes() -> None:
    settings = Settings.from_environment({"SANDYARD_NODE_NAME": "a" * 9, "NODES": str(MAX_NODES)})
    assert all(len(node.interface) < 16 for node in settings.nodes)
    assert len({node.interface for node in settings.nodes}) == MAX_NODES


def test_clusters_of_different_names_share_no_folder_namespace_or_cgroup() -> None:
    one, other = (Settings.from_environment({"SANDYARD_NODE_NAME": name}) for name in ("one", "other"))
    assert one.state != other.state
    assert one.mount != other.mount
    assert one.cgroup != other.cgroup
    assert one.node(1).namespace != other.node(1).namespace


@pytest.mark.parametrize("nodes", ["0", "5", "-1", "two", ""])
def test_a_number_of_nodes_out_of_bounds_is_refused(nodes: str) -> None:
    with pytest.raises(NodeError, match="NODES"):
        Settings.from_environment({"NODES": nodes})


def test_an_unknown_kubernetes_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(NodeError, match=r"KUBERNETES: no build is known for '1\.2' \(known: .*1\.37"):
        Settings.from_environment({"KUBERNETES": "1.2"})
