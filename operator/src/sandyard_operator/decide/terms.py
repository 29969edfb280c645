"""What a task gets: its own wishes within its class's bounds, else the class's defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sandyard_api.class_limits import Queue, Timeouts
from sandyard_api.quantity import parse, whole
from sandyard_api.resources import NAMES, Resources
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import TaskSpec

DISK: Final = "ephemeral-storage"


def timeouts(sandbox_class: SandboxClass | None) -> Timeouts:
    """Return a class's times; the defaults where the class is gone."""
    return Timeouts() if sandbox_class is None else sandbox_class.spec.timeouts


def queue(sandbox_class: SandboxClass | None) -> Queue:
    """Return a class's places; the defaults where the class is gone."""
    return Queue() if sandbox_class is None else sandbox_class.spec.queue


def run_seconds(spec: TaskSpec, sandbox_class: SandboxClass | None) -> int:
    """Return how long the script may run."""
    return spec.run_timeout_seconds or timeouts(sandbox_class).run_seconds


def install_seconds(spec: TaskSpec, sandbox_class: SandboxClass | None) -> int:
    """Return how long the install may take."""
    return spec.install_timeout_seconds or timeouts(sandbox_class).install_seconds


def ttl_seconds(spec: TaskSpec, sandbox_class: SandboxClass | None) -> int:
    """Return how long a finished task stays."""
    if spec.ttl_seconds_after_finished is not None:
        return spec.ttl_seconds_after_finished
    return timeouts(sandbox_class).default_ttl_seconds_after_finished


@dataclass(frozen=True, slots=True)
class Amounts:
    """Requests and limits of the runner, by resource name, as Kubernetes quantities."""

    requests: Mapping[str, str]
    limits: Mapping[str, str]


def amounts(spec: TaskSpec, sandbox_class: SandboxClass) -> Amounts:
    """Return the task's amounts, else the class's; of those no request is above its limit."""
    asked, given = spec.resources or Resources(), sandbox_class.spec.resources.default
    limits = {
        name: limit for name in NAMES if (limit := (asked.limits and asked.limits.get(name)) or given.limits.get(name))
    }
    requests = {}
    for name, limit in limits.items():
        own = asked.requests and asked.requests.get(name)
        request = own or given.requests.get(name)
        if request:
            requests[name] = request if own or parse(request) <= parse(limit) else limit
    return Amounts(requests=requests, limits=limits)


def disk_bytes(spec: TaskSpec, sandbox_class: SandboxClass) -> int:
    """Return how much /workspace, /tmp and /dev/shm may hold together."""
    return whole(amounts(spec, sandbox_class).limits[DISK])


def wants_egress(spec: TaskSpec) -> bool:
    """Tell whether the script may open sockets at all."""
    return spec.network is not None and bool(spec.network.egress or spec.network.dns)
