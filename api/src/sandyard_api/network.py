"""Egress: what a task asks for and what a class allows, in the shape of a NetworkPolicy's ipBlock."""

from enum import StrEnum
from ipaddress import ip_network
from typing import Annotated, Final, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from sandyard_api.schema import Rule, SpecModel, rules

CIDR_CHARACTERS: Final = 49  # the longest IPv6 prefix
MAX_PEERS: Final = 32
MAX_PORT: Final = 65535

Port = Annotated[int, Field(ge=1, le=MAX_PORT)]


def _is_range(text: str) -> str:
    if "/" not in text:
        raise ValueError("must be an address range such as 203.0.113.0/24")
    ip_network(text)  # raises ValueError also for host bits
    return text


Cidr = Annotated[
    str,
    Field(
        max_length=CIDR_CHARACTERS,
        json_schema_extra=rules(
            Rule(
                "isCIDR(self) && cidr(self).masked() == cidr(self)",
                "must be an address range such as 203.0.113.0/24, without host bits",
            )
        ),
    ),
    AfterValidator(_is_range),
]


class Protocol(StrEnum):
    """Transport protocols that a policy can name."""

    TCP = "TCP"
    UDP = "UDP"


class PortRange(SpecModel):
    """One port, or a range of them."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule("!has(self.endPort) || self.endPort >= self.port", "endPort must not be below port", "endPort")
        )
    )

    protocol: Protocol = Field(default=Protocol.TCP, description="TCP or UDP.")
    port: Port = Field(description="The port, or the first of the range.")
    end_port: Port | None = Field(default=None, description="The last port of the range.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.end_port is not None and self.end_port < self.port:
            raise ValueError("endPort must not be below port")
        return self


Ports = Annotated[tuple[PortRange, ...], Field(max_length=MAX_PEERS)]


class EgressPeer(SpecModel):
    """An address range that connections may go to."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.except) || self.except.all(hole, "
                "!isCIDR(hole) || !isCIDR(self.cidr) || cidr(self.cidr).containsCIDR(hole))",
                "each range in except must lie within cidr",
                "except",
            )
        )
    )

    cidr: Cidr = Field(description="The range, such as 203.0.113.0/24.")
    except_: Annotated[tuple[Cidr, ...], Field(max_length=MAX_PEERS)] = Field(
        default=(), alias="except", description="Ranges within cidr that stay closed."
    )
    ports: Ports = Field(default=(), description="The ports; all of them where the list is empty.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        whole = ip_network(self.cidr)
        for hole in map(ip_network, self.except_):
            if hole.network_address not in whole or hole.prefixlen < whole.prefixlen:
                raise ValueError("each range in except must lie within cidr")
        return self


Egress = Annotated[tuple[EgressPeer, ...], Field(max_length=MAX_PEERS)]


class Network(SpecModel):
    """What the script may reach. Nothing by default: its seccomp filter then denies sockets."""

    egress: Egress = Field(
        default=(),
        description="Address ranges; each must lie within what the class allows. "
        "Link-local, node, pod and service ranges are never allowed.",
    )
    dns: bool = Field(
        default=False,
        description="Whether the cluster's DNS can be asked; only where the class allows egress.",
    )
