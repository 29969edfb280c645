"""The bounds that a class sets, with their defaults: bytes, counts, compute resources, seconds, places."""

from typing import Final, Self

from pydantic import Field, model_validator

from sandyard_api import limits
from sandyard_api.fields import PositiveSeconds, Seconds
from sandyard_api.quantity import Quantity
from sandyard_api.resources import ResourceList, Resources
from sandyard_api.schema import Rule, SpecModel

MAX_BYTES: Final = 2**40  # 1 TiB: a class bounds, it does not open
MAX_PLACES: Final = 100_000
MIN_OPEN_FILES: Final = 64  # the interpreter and its imports need some
MAX_OPEN_FILES: Final = 2**20  # Linux' fs.nr_open
MIN_PROCESSES: Final = 4
MAX_PROCESSES: Final = 2**15


class ByteLimits(SpecModel):
    """Bounds in bytes and counts. Above one of an input: LimitExceeded; of a stream: it is cut."""

    code_bytes: int = Field(
        default=limits.CODE_BYTES,
        ge=1,
        le=limits.CONFIG_MAP_BYTES,
        description="Script. Inline code ends at 262144 in any case.",
    )
    stdin_bytes: int = Field(default=limits.STDIN_BYTES, ge=0, le=MAX_BYTES, description="Standard input.")
    stdout_bytes: int = Field(
        default=limits.STDOUT_BYTES,
        ge=0,
        le=limits.MAX_STREAM_BYTES,
        description="Standard output that is kept.",
    )
    stderr_bytes: int = Field(
        default=limits.STDERR_BYTES,
        ge=0,
        le=limits.MAX_STREAM_BYTES,
        description="Standard error that is kept.",
    )
    metadata_bytes: int = Field(
        default=limits.METADATA_BYTES,
        ge=0,
        le=limits.METADATA_BYTES,
        description="Text of the PEP 723 block. It cannot be raised: it bounds the parser's work.",
    )
    artifact_bytes: int = Field(
        default=limits.ARTIFACT_BYTES, ge=0, le=MAX_BYTES, description="Artifacts of one task together."
    )
    state_bytes: Quantity = Field(default=limits.STATE_BYTES, description="Saved state of one session, as a quantity.")
    open_files: int = Field(
        default=limits.OPEN_FILES,
        ge=MIN_OPEN_FILES,
        le=MAX_OPEN_FILES,
        description="Open files of one process.",
    )
    processes: int = Field(
        default=limits.PROCESSES,
        ge=MIN_PROCESSES,
        le=MAX_PROCESSES,
        description="Processes and threads of one task, where the node can bound them.",
    )


class DefaultRequests(ResourceList):
    """What the scheduler sets aside, field by field."""

    cpu: Quantity = Field(default="100m", description="Cores, such as 500m or 2.")
    memory: Quantity = Field(default="128Mi", description="Bytes, such as 500Mi.")


class DefaultLimits(ResourceList):
    """What cannot be exceeded, field by field."""

    cpu: Quantity = Field(default="1", description="Cores, such as 500m or 2.")
    memory: Quantity = Field(default="500Mi", description="Bytes, such as 500Mi.")
    ephemeral_storage: Quantity = Field(
        default="1Gi",
        alias="ephemeral-storage",
        description="Bytes that /workspace, /tmp and /dev/shm may hold together, such as 1Gi.",
    )


class DefaultResources(Resources):
    """Requests and limits of a task that asks for none."""

    requests: DefaultRequests = Field(default=DefaultRequests(), description="What the scheduler sets aside.")
    limits: DefaultLimits = Field(default=DefaultLimits(), description="What cannot be exceeded.")


class ClassResources(SpecModel):
    """Compute resources of the runner container."""

    default: DefaultResources = Field(default=DefaultResources(), description="What a task gets that asks for none.")
    max: ResourceList = Field(
        default=ResourceList(),
        description="Largest limits that a task may ask for; for a resource not named, the default limit.",
    )


# They stand on the class's spec: the API server judges a default before the fields in it have theirs.
TIMEOUT_RULES: Final = tuple(
    Rule(
        f"self.timeouts.{part}Seconds <= self.timeouts.max{part.capitalize()}Seconds",
        f"{part}Seconds must not exceed max{part.capitalize()}Seconds",
        f"timeouts.{part}Seconds",
    )
    for part in ("install", "run")
)


class Timeouts(SpecModel):
    """Times in seconds."""

    install_seconds: PositiveSeconds = Field(default=180, description="Install, where a task sets none.")
    max_install_seconds: PositiveSeconds = Field(default=900, description="Longest install a task may ask for.")
    run_seconds: PositiveSeconds = Field(default=60, description="Run, where a task sets none.")
    max_run_seconds: PositiveSeconds = Field(default=3600, description="Longest run a task may ask for.")
    default_ttl_seconds_after_finished: Seconds = Field(
        default=86400,
        alias="defaultTTLSecondsAfterFinished",
        description="When a finished task goes away by itself, where it sets none.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.install_seconds > self.max_install_seconds:
            raise ValueError("installSeconds must not exceed maxInstallSeconds")
        if self.run_seconds > self.max_run_seconds:
            raise ValueError("runSeconds must not exceed maxRunSeconds")
        return self


class Queue(SpecModel):
    """Places per namespace and class. Order is creationTimestamp, then uid."""

    max_running: int = Field(default=4, ge=1, le=MAX_PLACES, description="Tasks that run at the same time.")
    max_queued: int = Field(default=10, ge=0, le=MAX_PLACES, description="Tasks that wait; one more is QueueFull.")
