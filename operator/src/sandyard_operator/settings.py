"""What the operator is told by its environment, read once. No values of its own beyond the defaults below."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
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
