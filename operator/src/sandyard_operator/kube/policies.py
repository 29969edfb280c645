"""The NetworkPolicies of ours: what they select, what they open, and how one of others is told to open a pod.

``isolate`` closes every pod of ours in a namespace, both ways, but for the operator's way to the agent. The
others only open: the index during an install, and what a task may reach. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from sandyard_api import names
from sandyard_api.network import EgressPeer, Network, PortRange
from sandyard_api.sandbox_class import Index, IndexEgress
from sandyard_api.scheduling import LabelSelector
from sandyard_operator.decide.egress import FORBIDDEN
from sandyard_operator.decide.index import address_of
from sandyard_operator.decide.select import selects

IPNetwork: TypeAlias = IPv4Network | IPv6Network

NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"  # the API server puts it on every namespace
DNS_PORTS: Final = ({"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53})
KIND: Final = "NetworkPolicy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Who may reach an agent, and where the cluster's DNS is."""

    namespace: str  # the operator's
    operator_labels: Mapping[str, str] = field(default_factory=lambda: names.OPERATOR_LABELS)
    operator_cidrs: tuple[str, ...] = ()  # of an operator outside the cluster
    dns_namespace: str = "kube-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRanges:
    """Addresses of nodes, pods and Services: never reachable from a script."""

    networks: tuple[IPNetwork, ...] = field(default=())

    @classmethod
    def of(cls, texts: Iterable[str]) -> "ClusterRanges":
        """Read addresses and ranges; names and anything else are left out."""
        return cls(networks=tuple(sorted({n for n in map(_network, texts) if n is not None}, key=str)))


def isolate(neighbours: Neighbours) -> dict[str, Any]:
    """Return the spec of the policy that closes all pods of ours in a namespace."""
    operator: list[dict[str, Any]] = [
        {
            "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: neighbours.namespace}},
            "podSelector": {"matchLabels": dict(neighbours.operator_labels)},
        },
        *({"ipBlock": {"cidr": cidr}} for cidr in neighbours.operator_cidrs),
    ]
    return {
        "podSelector": {"matchExpressions": [{"key": names.LABEL_ROLE, "operator": "Exists"}]},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": operator, "ports": [{"protocol": "TCP", "port": names.AGENT_PORT}]}],
    }


def install(class_name: str, index: Index, neighbours: Neighbours) -> dict[str, Any]:
    """Return the spec of the policy that opens a class's index to its pods while they install."""
    host, port = address_of(index.url)
    rules = _index_rules(index.egress)
    if is_address(host):
        if not rules:
            cidr = str(ip_network(host))
            rules = [{"to": [{"ipBlock": {"cidr": cidr}}], "ports": [{"protocol": "TCP", "port": port}]}]
    else:
        rules.append(_dns_rule(neighbours))
    selected = {names.LABEL_CLASS: class_name, names.LABEL_NETWORK: names.NETWORK_INSTALLING}
    return _opening({"matchLabels": selected}, rules)


def egress(task_uid: str, network: Network, *, neighbours: Neighbours, ranges: ClusterRanges) -> dict[str, Any]:
    """Return the spec of the policy that opens to one task's pods what the task may reach."""
    rules = [rule for rule in (_peer_rule(peer, ranges) for peer in network.egress) if rule is not None]
    if network.dns:
        rules.append(_dns_rule(neighbours))
    return _opening({"matchLabels": {names.LABEL_OWNER_UID: task_uid}}, rules)


def install_name(class_name: str) -> str:
    """Name a class's install policy."""
    return f"{names.POLICY_INSTALL_PREFIX}{class_name}"


def egress_name(task_uid: str) -> str:
    """Name a task's egress policy."""
    return f"{names.POLICY_EGRESS_PREFIX}{task_uid}"


def opens(policy: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Tell whether a policy selects a pod with these labels and allows any traffic."""
    spec = policy["spec"]
    # A rule that allows nothing does not exist: an empty one allows everything.
    if not spec.get("ingress") and not spec.get("egress"):
        return False
    try:
        selector = LabelSelector.model_validate(spec.get("podSelector") or {})
    except ValidationError:
        return True  # larger than any selector we know: taken for one that selects
    return selects(selector, labels)


def is_address(host: str) -> bool:
    """Tell whether a URL's host is an IP address, which needs no DNS."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _opening(selector: dict[str, Any], rules: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a policy for egress; the API server drops an empty list, and so does this."""
    return {"podSelector": selector, "policyTypes": ["Egress"], **({"egress": rules} if rules else {})}


def _index_rules(given: IndexEgress) -> list[dict[str, Any]]:
    peers: list[dict[str, Any]] = [{"ipBlock": {"cidr": cidr}} for cidr in given.cidrs]
    if given.pod_selector is not None or given.namespace_selector is not None:
        peer = {"namespaceSelector": _selector(given.namespace_selector)}
        if given.pod_selector is not None:
            peer["podSelector"] = _selector(given.pod_selector)
        peers.append(peer)
    return [_rule(peers, given.ports)] if peers else []


def _peer_rule(peer: EgressPeer, ranges: ClusterRanges) -> dict[str, Any] | None:
    """Return a peer's rule with the cluster's own addresses cut out; None where nothing is left."""
    wanted = ip_network(peer.cidr)
    closed = (*FORBIDDEN, *ranges.networks)
    if any(_within(wanted, hole) for hole in closed):
        return None
    holes = {*map(ip_network, peer.except_), *(hole for hole in closed if _within(hole, wanted))}
    block: dict[str, Any] = {"cidr": str(wanted)}
    if holes:
        block["except"] = sorted(map(str, holes))
    return _rule([{"ipBlock": block}], peer.ports)


def _rule(peers: list[dict[str, Any]], ports: Iterable[PortRange]) -> dict[str, Any]:
    opened = [
        {
            "protocol": str(port.protocol),
            "port": port.port,
            **({} if port.end_port is None else {"endPort": port.end_port}),
        }
        for port in ports
    ]
    return {"to": peers, **({"ports": opened} if opened else {})}


def _dns_rule(neighbours: Neighbours) -> dict[str, Any]:
    selector = {"matchLabels": {NAMESPACE_NAME: neighbours.dns_namespace}}
    return {"to": [{"namespaceSelector": selector}], "ports": list(DNS_PORTS)}


def _selector(selector: LabelSelector | None) -> dict[str, Any]:
    if selector is None:
        return {}
    found: dict[str, Any] = selector.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return found


def _network(text: str) -> IPNetwork | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _within(inner: IPNetwork, outer: IPNetwork) -> bool:
    if isinstance(inner, IPv4Network) and isinstance(outer, IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(inner, IPv6Network) and isinstance(outer, IPv6Network):
        return inner.subnet_of(outer)
    return False
