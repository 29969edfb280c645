"""Egress within what the class allows."""

from typing import Any

import pytest

from sandyard_api.network import EgressPeer, Network
from sandyard_operator.decide.egress import refused_egress


def peer(cidr: str, **more: Any) -> dict[str, Any]:
    return {"cidr": cidr} | more


def refused(asked: dict[str, Any], *allowed: dict[str, Any]) -> str:
    peers = [EgressPeer.model_validate(one) for one in allowed]
    return refused_egress(Network.model_validate(asked), peers)


HTTPS = {"ports": [{"port": 443}]}
HIGH = {"ports": [{"port": 8000, "endPort": 8999}]}


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        ({}, []),
        ({"dns": True}, [peer("203.0.113.0/24")]),
        ({"egress": [peer("203.0.113.0/25")]}, [peer("203.0.113.0/24")]),
        ({"egress": [peer("2001:db8:1::/48")]}, [peer("203.0.113.0/24"), peer("2001:db8::/32")]),
        ({"egress": [peer("203.0.113.0/24", **HTTPS)]}, [peer("203.0.113.0/24", **HTTPS)]),
        (
            {"egress": [peer("203.0.113.0/24", ports=[{"port": 8080, "endPort": 8090}])]},
            [peer("203.0.113.0/24", **HIGH)],
        ),
        (
            {"egress": [peer("203.0.113.0/24", **{"except": ["203.0.113.0/26"]})]},
            [peer("203.0.113.0/24", **{"except": ["203.0.113.0/28"]})],
        ),
        ({"egress": [peer("203.0.113.128/25")]}, [peer("203.0.113.0/24", **{"except": ["203.0.113.0/28"]})]),
    ],
)
def test_what_lies_within_is_allowed(asked: dict[str, Any], allowed: list[dict[str, Any]]) -> None:
    assert refused(asked, *allowed) == ""


@pytest.mark.parametrize(
    ("asked", "allowed", "words"),
    [
        ({"dns": True}, [], "network.dns"),
        ({"egress": [peer("203.0.113.0/24")]}, [], "203.0.113.0/24"),
        ({"egress": [peer("203.0.112.0/23")]}, [peer("203.0.113.0/24")], "network.egress[0]"),
        ({"egress": [peer("2001:db8::/32")]}, [peer("203.0.113.0/24")], "2001:db8::/32"),
        ({"egress": [peer("203.0.113.0/24")]}, [peer("2001:db8::/32")], "203.0.113.0/24"),
        ({"egress": [peer("169.254.169.254/32")]}, [peer("0.0.0.0/0")], "never"),
        ({"egress": [peer("203.0.113.0/24")]}, [peer("203.0.113.0/24", **HTTPS)], "ports"),
        ({"egress": [peer("203.0.113.0/24", ports=[{"port": 80}])]}, [peer("203.0.113.0/24", **HTTPS)], "ports"),
        (
            {"egress": [peer("203.0.113.0/24", ports=[{"port": 443, "protocol": "UDP"}])]},
            [peer("203.0.113.0/24", **HTTPS)],
            "ports",
        ),
        (
            {"egress": [peer("203.0.113.0/24", ports=[{"port": 8990, "endPort": 9001}])]},
            [peer("203.0.113.0/24", **HIGH)],
            "ports",
        ),
        (
            {"egress": [peer("203.0.113.0/24")]},
            [peer("203.0.113.0/24", **{"except": ["203.0.113.0/28"]})],
            "not within",
        ),
        (
            {"egress": [peer("203.0.113.8/29")]},
            [peer("203.0.113.0/24", **{"except": ["203.0.113.0/28"]})],
            "not within",
        ),
    ],
)
def test_what_goes_beyond_is_refused(asked: dict[str, Any], allowed: list[dict[str, Any]], words: str) -> None:
    assert words in refused(asked, *allowed)


def test_a_range_that_is_none_is_refused_by_its_name() -> None:
    network = Network.model_construct(egress=(EgressPeer.model_construct(cidr="10.0.0.1/8"),), dns=False)
    assert "host bits" in refused_egress(network, ())
