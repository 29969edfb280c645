"""The operator's doors to the world, as its core sees them.

``Cluster`` is kept by the kube room, ``Agents`` by the agents room; the core in decide and drive calls only
what stands here, and tests may put real clients, slow ones or cut ones behind it. Every call may raise the
errors below and nothing else. Imports decide and the api package; no I/O of its own.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_api.wire import (
    AgentStatus,
    Bundle,
    ErrorCode,
    InstallRequest,
    InstallStatus,
    ProbeReply,
    ProbeRequest,
    RequirementsReply,
    RequirementsRequest,
    RunStatus,
    StartRequest,
)
from sandyard_operator.decide.pod import PodView, RefusalKind

__all__ = [
    "AgentRefusedError",
    "AgentUnreachableError",
    "Agents",
    "AlreadyExistsError",
    "Change",
    "ChangeFeed",
    "Cluster",
    "ConflictError",
    "ForbiddenError",
    "ForeignPolicy",
    "Key",
    "NotFoundError",
    "ObjectKind",
    "PodView",
    "PortError",
    "Recorder",
    "RefusalKind",
    "RefusedError",
    "UnavailableError",
    "UnsureError",
]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Key:
    """A namespaced object; the uid tells a re-created one apart."""

    namespace: str
    name: str
    uid: str


class PortError(Exception):
    """Root of what a door may raise."""


class NotFoundError(PortError):
    """The object, or its namespace, is not there."""


class ConflictError(PortError):
    """The object changed since it was read, or the precondition (uid) no longer holds."""


class AlreadyExistsError(PortError):
    """A create met an object of that name; read it and adopt or refuse."""


class RefusedError(PortError):
    """The API server refused (403, 422)."""

    def __init__(self, kind: RefusalKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class UnsureError(PortError):
    """The write was sent and no answer came (time-out, cut, 500): read before deciding anything."""


class UnavailableError(PortError):
    """Nothing was done (connection refused, 429, 503): come again, not before ``retry_after`` seconds."""

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ForbiddenError(UnavailableError):
    """The operator itself lacks the right: nothing was done, and an administrator may grant it."""


class AgentUnreachableError(PortError):
    """No answer from the pod's agent, or an answer by somebody else: nothing is known about the request."""


class AgentRefusedError(PortError):
    """The agent answered with an error."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPolicy:
    """A NetworkPolicy not of ours that selects a pod and allows traffic the class does not."""

    name: str


class Cluster(Protocol):
    """The API server. Reads here are consistent (never from a cache)."""

    async def get_task(self, namespace: str, name: str) -> SandboxTask | None:
        """Read a task."""

    async def list_tasks(self) -> tuple[SandboxTask, ...]:
        """Read all tasks."""

    async def get_pod(self, namespace: str, name: str) -> PodView | None:
        """Read a pod."""

    async def list_pods(self) -> tuple[PodView, ...]:
        """Read all pods that carry our labels."""

    async def get_class(self, name: str) -> SandboxClass | None:
        """Read a class."""

    async def list_classes(self) -> tuple[SandboxClass, ...]:
        """Read all classes."""

    async def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Read a namespace's labels."""

    async def config_map_value(self, namespace: str, name: str, key: str) -> bytes | None:
        """Value of ``data`` (as UTF-8) or ``binaryData``; None where the object or the key is not there."""

    async def secret_value(self, namespace: str, name: str, key: str) -> bytes | None:
        """Read a Secret's value; None where it or the key is not there."""

    async def write_task_status(self, task: SandboxTask, status: Mapping[str, Any]) -> SandboxTask:
        """Compare-and-swap the whole status on uid and resourceVersion; returns what was stored."""

    async def write_class_status(self, sandbox_class: SandboxClass, status: Mapping[str, Any]) -> None:
        """Compare-and-swap a class's whole status."""

    async def delete_task(self, task: SandboxTask) -> None:
        """Delete with uid and resourceVersion preconditions (TTL)."""

    async def prepare_namespace(self, namespace: str, sandbox_class: SandboxClass) -> None:
        """Apply what a pod of this class needs there: agent TLS Secret, isolate and install policies.

        Free of API writes when this process has seen them in place.
        """

    async def create_pod(self, task: SandboxTask, sandbox_class: SandboxClass, *, attempt: int) -> PodView:
        """Create the task's pod of that attempt, signed, named by ``pod_name``; its egress policy too."""

    async def set_network(self, pod: PodView, network: str) -> PodView:
        """Flip the network label, tested on uid and resourceVersion."""

    async def foreign_policies(self, pod: PodView) -> tuple[ForeignPolicy, ...]:
        """Return the policies of others that open a pod."""

    async def delete_pod(self, pod: PodView) -> None:
        """Delete with a uid precondition; absent is success."""

    async def emit(self, task: SandboxTask, *, reason: str, message: str, warning: bool) -> None:
        """Record an Event: deduplicated, rate-limited, never raises."""

    async def index_reachable(self, host: str, port: int) -> str:
        """Connect from the operator itself: the control of the cut's proof.

        Returns the IP address that answered, empty if none did. The agent is then asked for that address: in
        a closed pod the name would not even resolve, which proves nothing.
        """


class Agents(Protocol):
    """The agent of one pod, told apart by pod UID; TLS, tokens, nonce and echo are this room's business."""

    async def status(self, pod: PodView, *, wait: float) -> AgentStatus:
        """Ask for everything; answers when the supervisor is ready or lost, or after ``wait`` seconds."""

    async def send_bundle(self, pod: PodView, bundle: Bundle) -> str:
        """Stage inputs; returns the digest the agent computed."""

    async def requirements(self, pod: PodView, request: RequirementsRequest) -> RequirementsReply:
        """Ask what the image lacks."""

    async def install(self, pod: PodView, request: InstallRequest) -> InstallStatus:
        """Begin the pod's one install, or tell how far it is."""

    async def install_status(self, pod: PodView, *, wait: float) -> InstallStatus:
        """Ask for the install; answers at its end or after ``wait`` seconds."""

    async def probe(self, pod: PodView, request: ProbeRequest) -> ProbeReply:
        """Have the agent try a fresh connect."""

    async def start(self, pod: PodView, run_id: str, request: StartRequest) -> RunStatus:
        """Start the run, or tell its state if it was accepted before."""

    async def run_status(self, pod: PodView, run_id: str, *, wait: float) -> RunStatus:
        """Ask for the run; answers at its end or after ``wait`` seconds."""

    async def cancel(self, pod: PodView, run_id: str) -> RunStatus:
        """Stop the run; its output is kept."""

    async def revoke(self, pod: PodView, run_id: str) -> RunStatus:
        """Have the run promised never to be accepted, or tell its state if it was."""

    async def acknowledge(self, pod: PodView, run_id: str) -> RunStatus:
        """Tell that the result is stored."""


class Recorder(Protocol):
    """Metrics of the core; kept by the telemetry room. Labels come from closed sets."""

    def acted(self, action: str, *, seconds: float, error: str) -> None:
        """Count one action of a plan by its kind; ``error`` is the class of the PortError, empty if none."""

    def finished(self, task: SandboxTask) -> None:
        """Count the end of a task, with its status as written."""


class ObjectKind(StrEnum):
    """What the feed watches."""

    TASK = "task"
    POD = "pod"
    CLASS = "class"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An object as last seen, or gone (``value`` is then its last known form)."""

    kind: ObjectKind
    value: SandboxTask | PodView | SandboxClass
    gone: bool


class ChangeFeed(Protocol):
    """Watch events from the edge room; a lost one is repaired by the sweep."""

    def changes(self) -> AsyncIterator[Change]:
        """Yield changes for ever."""
