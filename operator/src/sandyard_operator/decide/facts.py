"""What is known when a decision about one task is made. Facts only, as values.

The task, its class and its pods come from the API server; the place in the queue is counted from all tasks;
an ``AgentView`` is what this process heard from one pod's agent and is asked for anew after a restart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sandyard_api.class_limits import Queue
from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_api.wire import (
    AgentStatus,
    ErrorCode,
    InstallStatus,
    RequirementsReply,
    RunStatus,
    SupervisorPhase,
)
from sandyard_operator.decide import terms
from sandyard_operator.decide.judge import Verdict
from sandyard_operator.decide.pod import PodView, RefusalKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A task among the others of its namespace and class that are not finished.

    Order is creationTimestamp, then uid. ``admitted`` counts the others that hold a place, also those whose
    admission is being written right now.
    """

    admitted: int  # others that hold a place
    waiting_before: int  # others without a place that come first
    waiting_taken: int  # others without a place that come first or were accepted already
    placed_before: int  # others with a place that have a pod, or come first
    quota_before: bool  # one that comes first waits for quota


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The API server's last answer to the create of this attempt's pod."""

    kind: RefusalKind
    message: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRefusal:
    """The agent's last answer was an error that trying again does not change."""

    code: ErrorCode
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """What this process heard from the agent of one pod, and when it first saw that pod."""

    pod_uid: str
    seen_at: datetime
    status: AgentStatus | None = None
    ready_at: datetime | None = None
    staged_digest: str = ""  # the agent computed the digest of the bundle that this process sent
    requirements: RequirementsReply | None = None
    install: InstallStatus | None = None
    install_at: datetime | None = None  # first seen with the network open
    closed_at: datetime | None = None  # first seen closed after the install
    cut_proofs: int = 0  # in a row
    cut_failed_at: datetime | None = None
    foreign_policies: tuple[str, ...] | None = None
    run: RunStatus | None = None
    cancel_at: datetime | None = None  # cancel was answered
    revoke_refused: bool = False
    refusal: AgentRefusal | None = None
    unreachable_at: datetime | None = None  # since when nothing was heard; None after any answer
    ended_at: datetime | None = None  # first seen finished
    acknowledged: bool = False

    @property
    def ready(self) -> bool:
        """Tell whether agent and supervisor can take work."""
        return self.status is not None and self.status.supervisor is SupervisorPhase.READY


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All that a decision about one task may look at."""

    task: SandboxTask
    sandbox_class: SandboxClass | None  # the one the task was admitted with, else as it is now
    verdict: Verdict | None  # None: not asked for, since the task is claimed or finished
    place: Place
    first_seen: datetime  # the task, by this process
    pods: tuple[PodView, ...] = ()  # signed ones whose controller the task is
    agents: Mapping[str, AgentView] = field(default_factory=dict)  # by pod uid
    attempt: int = 1
    created: PodView | None = None  # the pod of this attempt as this process created or adopted it
    name_taken: bool = False  # the name of this attempt's pod is taken by a pod that is not ours
    refusal: Refusal | None = None
    last_views: Mapping[str, PodView] = field(default_factory=dict)  # by pod uid, also of pods that went
    absent: frozenset[str] = frozenset()  # pod uids that a consistent read did not find
    deleted: frozenset[str] = frozenset()  # pod uids whose deletion was asked for
    bundle_digest: str = ""  # of the inputs in hand
    image_unknown: bool = False  # the class's status does not tell yet what the image holds
    unsure: bool = False  # a status write got no answer
    faults: int = 0  # looks at this task that ended in an error of our own, in a row
    refused_write: str = ""  # the API server refused a status as invalid, and said so

    @property
    def current_pod(self) -> PodView | None:
        """Return the pod of this attempt."""
        return next((pod for pod in self.pods if pod.attempt == self.attempt), None)

    def pod_with(self, uid: str) -> PodView | None:
        """Return the pod of that uid."""
        return next((pod for pod in self.pods if pod.uid == uid), None)

    def view_of(self, pod: PodView, now: datetime) -> AgentView:
        """Return what was heard from a pod's agent."""
        return self.agents.get(pod.uid) or AgentView(pod_uid=pod.uid, seen_at=now)

    @property
    def queue(self) -> Queue:
        """Return how many may run and wait."""
        return terms.queue(self.sandbox_class)

    @property
    def run_timeout_seconds(self) -> int:
        """Return how long the script may run."""
        return terms.run_seconds(self.task.spec, self.sandbox_class)

    @property
    def ttl_seconds(self) -> int:
        """Return how long the task stays when finished."""
        return terms.ttl_seconds(self.task.spec, self.sandbox_class)
