"""Whether the egress a task asks for lies within what its class allows."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, TypeAlias

from sandyard_api.network import EgressPeer, Network, PortRange

IPNetwork: TypeAlias = IPv4Network | IPv6Network

# Never reachable, whatever a class says: this host, link-local with its metadata services, multicast.
FORBIDDEN: Final = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/32",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "224.0.0.0/4",
        "255.255.255.255/32",
        "::/128",
        "::1/128",
        "fe80::/10",
        "ff00::/8",
    )
)


def refused_egress(asked: Network, allowed: Iterable[EgressPeer]) -> str:
    """Say what of the egress is not allowed; empty when all of it is."""
    allowed = tuple(allowed)
    if asked.dns and not allowed:
        return "network.dns: the class allows no egress"
    for index, peer in enumerate(asked.egress):
        where = f"network.egress[{index}]"
        try:
            wanted = ip_network(peer.cidr)
        except ValueError as error:
            return f"{where}.cidr: {error}"
        if any(_within(wanted, forbidden) for forbidden in FORBIDDEN):
            return f"{where}.cidr: {peer.cidr} is never reachable"
        if not any(_covers(grant, peer, wanted) for grant in allowed):
            return f"{where}: {peer.cidr} and its ports are not within what the class allows"
    return ""


def _covers(grant: EgressPeer, peer: EgressPeer, wanted: IPNetwork) -> bool:
    if not _within(wanted, ip_network(grant.cidr)):
        return False
    closed = tuple(ip_network(text) for text in peer.except_)
    for text in grant.except_:
        hole = ip_network(text)
        if _overlap(wanted, hole) and not any(_within(hole, own) for own in closed):
            return False
    return not grant.ports or (
        bool(peer.ports) and all(any(_port_within(port, given) for given in grant.ports) for port in peer.ports)
    )


def _within(inner: IPNetwork, outer: IPNetwork) -> bool:
    if isinstance(inner, IPv4Network) and isinstance(outer, IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(inner, IPv6Network) and isinstance(outer, IPv6Network):
        return inner.subnet_of(outer)
    return False


def _overlap(one: IPNetwork, other: IPNetwork) -> bool:
    return _within(one, other) or _within(other, one)


def _port_within(port: PortRange, given: PortRange) -> bool:
    last, given_last = port.end_port or port.port, given.end_port or given.port
    return port.protocol == given.protocol and given.port <= port.port and last <= given_last
