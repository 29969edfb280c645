"""What a decision may ask for: the closed unions of actions and waits, and the plan that holds them.

Actions are carried out in order; the first that fails ends the plan and the key is looked at again. A wait
is what should be listened to meanwhile. Values only: who carries them out is not known here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from sandyard_operator.decide.pod import PodView


class StatusStep(StrEnum):
    """Which of a task's few status writes this is."""

    QUEUED = "queued"
    ADMITTED = "admitted"  # the write that takes a place among the running
    PROGRESS = "progress"
    CLAIM = "claim"  # W1, the point of no return: names the pod and the run
    FINAL = "final"  # W2, never changed after


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Read the task from the API server itself: a write's answer was lost."""


@dataclass(frozen=True, slots=True)
class ReadPod:
    """Read the pod from the API server itself: absence from the cache proves nothing."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ReadNamespace:
    """Read the namespace's labels, which the class selects by."""


@dataclass(frozen=True, slots=True)
class ReadInputs:
    """Read the ConfigMaps and Secrets that the task names."""


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Compare-and-swap the task's status."""

    step: StatusStep
    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Emit:
    """Record an Event; carries no user text."""

    reason: str
    message: str
    warning: bool


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Create the pod of this attempt, or adopt the one that an earlier create left."""

    attempt: int


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """Give the pod of the current attempt up before W1: nothing of the user can have started in it."""

    after: int


@dataclass(frozen=True, slots=True)
class StageBundle:
    """Send code, standard input, files and environment to the agent."""

    pod: PodView


@dataclass(frozen=True, slots=True)
class AskRequirements:
    """Ask the agent what the image lacks of the script's requirements."""

    pod: PodView
    requirements: tuple[str, ...]
    requires_python: str


@dataclass(frozen=True, slots=True)
class SetNetwork:
    """Flip the pod's network label."""

    pod: PodView
    network: str


@dataclass(frozen=True, slots=True)
class Install:
    """Have the agent install; repeated, it answers how far it is."""

    pod: PodView
    requirements: tuple[str, ...]
    timeout_seconds: int


@dataclass(frozen=True, slots=True)
class ProveCut:
    """Have the agent try the index once while the operator tries the same address."""

    pod: PodView


@dataclass(frozen=True, slots=True)
class CheckPolicies:
    """Look for policies of others that open the pod."""

    pod: PodView


@dataclass(frozen=True, slots=True)
class StartRun:
    """Start the run that W1 names; repeated, the agent answers its state."""

    pod: PodView
    run_id: str
    input_digest: str
    timeout_seconds: int


@dataclass(frozen=True, slots=True)
class CancelRun:
    """Stop the run and keep what it wrote."""

    pod: PodView
    run_id: str


@dataclass(frozen=True, slots=True)
class RevokeRun:
    """Have the agent promise never to accept the run; a run it accepted answers its state instead."""

    pod: PodView
    run_id: str


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Tell the agent that its result is stored."""

    pod: PodView
    run_id: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod, with its uid as precondition."""

    pod: PodView


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """Delete the task: its time to live is over."""


@dataclass(frozen=True, slots=True)
class LearnImage:
    """Write into the class's status what its image holds, as an agent told it."""

    pod: PodView


Action: TypeAlias = (
    ReadTask
    | ReadPod
    | ReadNamespace
    | ReadInputs
    | WriteStatus
    | Emit
    | CreatePod
    | NextAttempt
    | StageBundle
    | AskRequirements
    | SetNetwork
    | Install
    | ProveCut
    | CheckPolicies
    | StartRun
    | CancelRun
    | RevokeRun
    | Acknowledge
    | DeletePod
    | DeleteTask
    | LearnImage
)


@dataclass(frozen=True, slots=True)
class AwaitAgent:
    """Listen until the agent and its supervisor are ready."""

    pod_uid: str


@dataclass(frozen=True, slots=True)
class AwaitInstall:
    """Listen until the install ends."""

    pod_uid: str


@dataclass(frozen=True, slots=True)
class AwaitRun:
    """Listen until the run ends."""

    pod_uid: str
    run_id: str


Wait: TypeAlias = AwaitAgent | AwaitInstall | AwaitRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Actions now, what to listen to then, and when to look again if nothing is heard."""

    actions: tuple[Action, ...] = ()
    wait: Wait | None = None
    due: datetime | None = None
