"""What the core knows of a pod: facts read off the object, no judgement.

Built by the kube room from a raw Pod; consumed by the pure decisions. Imports names and the standard
library.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from sandyard_api.names import POD_NAME_PREFIX


class PodPhase(StrEnum):
    """The pod's phase as Kubernetes reports it."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerView:
    """One container's state; empty strings and None where a state is not there."""

    started: bool
    waiting_reason: str = ""  # ImagePullBackOff, ErrImagePull, CreateContainerConfigError …
    waiting_message: str = ""
    exit_code: int | None = None  # set when terminated
    exit_signal: int = 0
    terminated_reason: str = ""  # OOMKilled, Error, Completed …


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """A pod of ours (``signed``) or one that only looks like it (not ``signed``)."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    owner_uid: str  # of the SandboxTask by the controller ownerReference; empty if none
    attempt: int
    signed: bool  # the operator's signature over namespace, name, owner uid and spec hash holds for the live spec
    created_at: datetime
    phase: PodPhase
    deleting: bool  # deletionTimestamp is set
    deletion_by_operator: bool  # this process asked for the deletion (told by the cache, not by the object)
    network: str  # value of the network label
    node_name: str = ""
    ip: str = ""
    image: str = ""  # of the runner, as the node resolved it where known
    owner_name: str = ""
    user_namespace: bool = False
    runtime_class: str = ""
    scheduled: bool = False
    unschedulable_message: str = ""
    # Of the DisruptionTarget condition: PreemptionByScheduler, EvictionByEvictionAPI, TerminationByKubelet …
    disruption_reason: str = ""
    status_reason: str = ""  # Evicted, NodeLost, NodeAffinity, OutOfcpu …
    status_message: str = ""
    node_ready: bool = True  # the Ready condition's reason is not NodeLost/NodeNotReady
    agent: ContainerView = ContainerView(started=False)
    runner: ContainerView = ContainerView(started=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)


class RefusalKind(StrEnum):
    """Why the API server refused a write, as far as it can be told."""

    QUOTA_TAKEN = "quotaTaken"  # others hold the quota now: wait
    QUOTA_TOO_SMALL = "quotaTooSmall"  # the pod alone exceeds it: final
    ADMISSION = "admission"  # LimitRange, Pod Security, a policy or webhook
    NAMESPACE_ENDING = "namespaceEnding"
    INVALID = "invalid"


def pod_name(task_uid: str, attempt: int) -> str:
    """Name a task's pod of that attempt: the same after every restart, so a create is idempotent."""
    return f"{POD_NAME_PREFIX}{task_uid}-{attempt}"
