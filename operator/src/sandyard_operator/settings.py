"""What the operator is told by its environment, read once. No values of its own beyond the defaults below."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final, Self

PORTS: Final = range(1, 65536)
LOG_LEVELS: Final = ("debug", "info", "warning", "error")


class SettingsError(ValueError):
    """A variable is missing or is not what it has to be; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings."""

    namespace: str  # its own: Lease, authority, index credentials
    identity: str  # holder of the Lease: the pod's name
    log_level: str
    metrics_port: int
    probe_port: int
    workers: int  # keys worked on at the same time
    operator_cidrs: tuple[str, ...]  # of an operator outside the cluster: who may reach agents besides its pods
    cluster_cidrs: tuple[str, ...]  # of pods and Services, as far as no Node or ServiceCIDR tells them
    dns_namespace: str

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Read the environment; raises SettingsError."""
        return cls(
            namespace=_text(environ, "SANDYARD_NAMESPACE"),
            identity=_text(environ, "SANDYARD_POD_NAME"),
            log_level=_choice(environ, "SANDYARD_LOG_LEVEL", default="info", among=LOG_LEVELS),
            metrics_port=_number(environ, "SANDYARD_METRICS_PORT", default=9090, within=PORTS),
            probe_port=_number(environ, "SANDYARD_PROBE_PORT", default=8081, within=PORTS),
            workers=_number(environ, "SANDYARD_WORKERS", default=32, within=range(1, 1025)),
            operator_cidrs=_ranges(environ, "SANDYARD_OPERATOR_CIDRS"),
            cluster_cidrs=_ranges(environ, "SANDYARD_CLUSTER_CIDRS"),
            dns_namespace=environ.get("SANDYARD_DNS_NAMESPACE") or "kube-system",
        )


def _text(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "")
    if not value:
        raise SettingsError(f"{name} is not set; the chart's Deployment sets it")
    return value


def _choice(environ: Mapping[str, str], name: str, *, default: str, among: tuple[str, ...]) -> str:
    value = environ.get(name) or default
    if value not in among:
        raise SettingsError(f"{name} is {value!r}; it must be one of {', '.join(among)}")
    return value


def _number(environ: Mapping[str, str], name: str, *, default: int, within: range) -> int:
    text = environ.get(name) or str(default)
    if not text.isdecimal() or int(text) not in within:
        raise SettingsError(f"{name} is {text!r}; it must be a number from {within.start} to {within.stop - 1}")
    return int(text)


def _ranges(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Read address ranges, separated by commas."""
    parts = tuple(part.strip() for part in environ.get(name, "").split(",") if part.strip())
    for part in parts:
        try:
            ip_network(part)
        except ValueError as error:
            raise SettingsError(
                f"{name}: {error}; it must be ranges such as 10.0.0.0/8, separated by commas"
            ) from error
    return parts
