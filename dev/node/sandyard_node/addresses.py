"""The address plan of one cluster: everything follows from one /18 range and the number of a node.

The default range lies in 198.18.0.0/15, which RFC 2544 keeps for tests, so it collides with no real network. Other
ranges let several clusters live on one machine.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from sandyard_node.errors import NodeError

DEFAULT_RANGE: Final = "198.18.0.0/18"
RANGE_PREFIX: Final = 18
POD_NETS_AT: Final = 16  # the pods' /20 starts at this /24 of the range
SERVICE_NETS_AT: Final = 32  # and the services' /20 at this one
PODS_OF_A_CLUSTER: Final = 20  # prefix lengths
PODS_OF_A_NODE: Final = 24
DNS_OFFSET: Final = 10


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses of the host, the nodes, pods and services. Nodes count from 1."""

    whole: IPv4Network

    @classmethod
    def parse(cls, text: str) -> "Addresses":
        """Read a range such as 198.18.0.0/18."""
        try:
            whole = IPv4Network(text)
        except ValueError as error:
            raise NodeError(
                f"SANDYARD_NODE_RANGE: {error}.", fix=f"give a /{RANGE_PREFIX}, as {DEFAULT_RANGE}"
            ) from error
        if whole.prefixlen != RANGE_PREFIX:
            raise NodeError(f"SANDYARD_NODE_RANGE: {text} is no /{RANGE_PREFIX}.", fix=f"give one, as {DEFAULT_RANGE}")
        return cls(whole)

    def _block(self, index: int, prefix: int) -> IPv4Network:
        return IPv4Network((int(self.whole.network_address) + index * 256, prefix))

    @property
    def host(self) -> IPv4Address:
        """The machine itself, as the nodes see it."""
        return self.whole.network_address + 1

    def node(self, number: int) -> IPv4Address:
        """Return a node's address."""
        return self.host + number

    @property
    def pods(self) -> IPv4Network:
        """All pods."""
        return self._block(POD_NETS_AT, PODS_OF_A_CLUSTER)

    def pods_of(self, number: int) -> IPv4Network:
        """Return the range of one node's pods."""
        return self._block(POD_NETS_AT + number - 1, PODS_OF_A_NODE)

    @property
    def services(self) -> IPv4Network:
        """All services."""
        return self._block(SERVICE_NETS_AT, PODS_OF_A_CLUSTER)

    @property
    def api_service(self) -> IPv4Address:
        """The Service ``kubernetes``."""
        return self.services.network_address + 1

    @property
    def dns_service(self) -> IPv4Address:
        """The Service ``kube-dns``."""
        return self.services.network_address + DNS_OFFSET
