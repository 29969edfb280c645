"""Sandbox: a session, one interpreter whose variables persist between calls."""

from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, ConfigDict, Field, model_validator

from sandyard_api.conditions import Conditions, Metadata
from sandyard_api.fields import ClassName, Dependencies, ObjectName, Seconds, Text
from sandyard_api.inputs import Env, Files, one_of
from sandyard_api.limits import MESSAGE_CHARACTERS, REASON_CHARACTERS
from sandyard_api.network import Network
from sandyard_api.observed import Isolation, Packages
from sandyard_api.reasons import SandboxPhase
from sandyard_api.resources import Resources
from sandyard_api.schema import ONE_VALUE, Rule, SpecModel, StatusModel, immutable, rules, unchanged

MAX_SKIPPED: Final = 1024
_FIXED: Final = ("sandboxClassName", "sandboxPoolName", "network", "env", "files", "persistence")


class OperatingMode(StrEnum):
    """Whether the session has a pod."""

    RUNNING = "Running"
    SUSPENDED = "Suspended"


class EndAction(StrEnum):
    """What happens to a session that is idle or at the end of its life."""

    SUSPEND = "Suspend"
    DELETE = "Delete"


class Retention(StrEnum):
    """What happens to saved state when the Sandbox goes."""

    DELETE = "Delete"
    RETAIN = "Retain"


class RestoreSource(SpecModel):
    """Saved state to begin with."""

    model_config = ConfigDict(json_schema_extra=rules(one_of("stateName", "sandboxName")) | ONE_VALUE)

    state_name: ObjectName | None = Field(default=None, description="A saved state of the same namespace.")
    sandbox_name: ObjectName | None = Field(
        default=None, description="A Sandbox of the same namespace, whose last saved state is taken."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.state_name is None) == (self.sandbox_name is None):
            raise ValueError("set exactly one of stateName and sandboxName")
        return self


class Persistence(SpecModel):
    """Whether variables outlive the pod."""

    enabled: bool = Field(default=False, description="Save variables on suspension and on demand.")
    retain: Retention = Field(
        default=Retention.DELETE, description="Delete or Retain the saved state when the Sandbox goes."
    )
    restore_from: RestoreSource | None = Field(default=None, description="Saved state to begin with.")


def _while_suspended(field: str) -> Rule:
    return Rule(
        f"oldSelf.operatingMode == 'Suspended' || ({unchanged(field)})",
        f"{field} may change only while operatingMode is Suspended",
        field,
    )


class SandboxSpec(SpecModel):
    """The session that is wanted."""

    model_config = ConfigDict(
        json_schema_extra=rules(*immutable(_FIXED), _while_suspended("dependencies"), _while_suspended("resources"))
    )

    sandbox_class_name: ClassName = Field(
        default="default", description="The SandboxClass that sets image, index and limits."
    )
    sandbox_pool_name: ObjectName | None = Field(
        default=None,
        description="The pool to take a pod from; else any pool of the class that fits, else a cold pod.",
    )
    dependencies: Dependencies = Field(
        default=(), description="Requirements to install first, by the rules of a script's PEP 723 block."
    )
    resources: Resources | None = Field(
        default=None,
        description="Resources of the interpreter; the class's where absent, within its maximum.",
    )
    network: Network | None = Field(
        default=None,
        description="What the session may reach; nothing by default. Only what the class allows.",
    )
    env: Env = Field(default=(), description="Environment variables of the interpreter.")
    files: Files = Field(default=(), description="Files placed below /workspace before the start.")
    operating_mode: OperatingMode = Field(
        default=OperatingMode.RUNNING,
        description="Running, or Suspended: saved and without a pod. Writing Running resumes.",
    )
    idle_timeout_seconds: Seconds = Field(
        default=600,
        description="Idle time before onIdle; 0: for ever. A running call or an open stream is never idle.",
    )
    on_idle: EndAction | None = Field(
        default=None, description="Suspend or Delete; where absent, Suspend with persistence, else Delete."
    )
    max_lifetime_seconds: Seconds = Field(
        default=28800, description="Longest life before onExpiry; suspended time does not count; 0: for ever."
    )
    on_expiry: EndAction | None = Field(
        default=None, description="Suspend or Delete; where absent, Suspend with persistence, else Delete."
    )
    persistence: Persistence = Field(default=Persistence(), description="Whether variables outlive the pod.")


class SkippedVariable(StatusModel):
    """A variable that was not saved."""

    name: Text = Field(description="Its name.")
    reason: str = Field(max_length=REASON_CHARACTERS, description="Why.")


class SavedState(StatusModel):
    """The last saved state."""

    name: ObjectName = Field(description="Its name, for restoreFrom.stateName.")
    time: AwareDatetime = Field(description="When it was saved.")
    bytes: int = Field(ge=0, description="Its size.")
    variables: int = Field(ge=0, description="How many variables it holds.")
    skipped: Annotated[tuple[SkippedVariable, ...], Field(max_length=MAX_SKIPPED)] = Field(
        default=(), description="Variables that could not be saved."
    )


class SandboxStatus(StatusModel):
    """The session as it is."""

    observed_generation: int | None = Field(
        default=None, ge=0, description="The metadata.generation that this status was derived from."
    )
    phase: SandboxPhase | None = Field(default=None, description="Where the session is, for people.")
    reason: str = Field(
        default="", max_length=REASON_CHARACTERS, description="Why it is there, in one word for programs."
    )
    message: str = Field(
        default="", max_length=MESSAGE_CHARACTERS, description="Why it is there, in a sentence for people."
    )
    conditions: Conditions = Field(default=(), description="Ready, Suspended, StateSaved, StateRestored.")
    pod_name: Text | None = Field(default=None, description="The pod.")
    pod_uid: Text | None = Field(default=None, alias="podUID", description="The pod's UID.")
    warm: bool | None = Field(default=None, description="Whether the pod was taken from a pool.")
    claim_time: AwareDatetime | None = Field(default=None, description="When the pod was claimed.")
    ready_time: AwareDatetime | None = Field(default=None, description="When a call was first answered.")
    expiration_time: AwareDatetime | None = Field(default=None, description="When onExpiry is due.")
    last_activity_time: AwareDatetime | None = Field(
        default=None, description="When something last ran; at most every 30 seconds and on transitions."
    )
    execution_count: int | None = Field(
        default=None, ge=0, description="Calls so far; at most every 30 seconds and on transitions."
    )
    on_idle: EndAction | None = Field(default=None, description="The onIdle in force.")
    on_expiry: EndAction | None = Field(default=None, description="The onExpiry in force.")
    packages: Packages = Field(default=(), description="What the dependencies were resolved to.")
    isolation: Isolation | None = Field(default=None, description="What was in force when the pod started.")
    saved_state: SavedState | None = Field(default=None, description="The last saved state.")


class Sandbox(StatusModel):
    """A session: one interpreter whose variables persist between calls."""

    api_version: Literal["sandyard.dev/v1alpha1"] = "sandyard.dev/v1alpha1"
    kind: Literal["Sandbox"] = "Sandbox"
    metadata: Metadata
    spec: SandboxSpec = Field(default=SandboxSpec(), description="The session that is wanted.")
    status: SandboxStatus | None = Field(default=None, description="The session as it is.")
