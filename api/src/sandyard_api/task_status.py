"""What the operator writes about a task. ``run`` and a true ``Finished`` never change once set."""

from typing import Annotated

from pydantic import AwareDatetime, ConfigDict, Field

from sandyard_api.conditions import Conditions
from sandyard_api.fields import Digest, ObjectName, Text
from sandyard_api.limits import ARTIFACTS, MESSAGE_CHARACTERS, REASON_CHARACTERS, WARNINGS
from sandyard_api.observed import Isolation, Packages
from sandyard_api.reasons import TaskPhase
from sandyard_api.schema import ONE_VALUE, StatusModel

STREAM_CHARACTERS = 24 * 1024  # 16 KiB of text and the cut mark, with room
TRACEBACK_CHARACTERS = 8 * 1024  # the 4 KiB tail, with room
PATH_CHARACTERS = 4096  # PATH_MAX


class Run(StatusModel):
    """The one start of the script, written before it: which pod, which run, which inputs."""

    model_config = ConfigDict(json_schema_extra=ONE_VALUE)

    pod_name: ObjectName = Field(description="The pod.")
    pod_uid: Text = Field(alias="podUID", description="Its UID: another pod of that name is not meant.")
    attempt: int = Field(ge=1, description="Counts pods; only ones that never started the script came before.")
    run_id: Text = Field(alias="runID", description="What the agent starts at most once.")
    input_digest: Text = Field(description="Digest of code, standard input, files, arguments and variables.")


class Timings(StatusModel):
    """How long each part took, in milliseconds."""

    queue_milliseconds: int | None = Field(default=None, ge=0, description="Created until its turn.")
    start_milliseconds: int | None = Field(default=None, ge=0, description="Its turn until the agent was ready.")
    install_milliseconds: int | None = Field(
        default=None,
        ge=0,
        description="Resolving, installing and cutting the network; absent without install.",
    )
    run_milliseconds: int | None = Field(default=None, ge=0, description="The script itself.")
    total_milliseconds: int | None = Field(default=None, ge=0, description="Created until finished.")


class Stream(StatusModel):
    """What the script wrote to one stream."""

    text: str = Field(
        default="",
        max_length=STREAM_CHARACTERS,
        description="All of it up to 16 KiB of UTF-8; of more, head and tail around a mark.",
    )
    bytes: int = Field(default=0, ge=0, description="All that the script wrote.")
    truncated: bool = Field(default=False, description="Whether it wrote more than the class keeps.")
    sha256: Digest = Field(default="", description="SHA-256 of the bytes kept, which the data API serves whole.")


class Artifact(StatusModel):
    """A regular file that the script left in $SANDYARD_OUTPUT_DIR."""

    path: str = Field(max_length=PATH_CHARACTERS, description="Relative to $SANDYARD_OUTPUT_DIR.")
    bytes: int = Field(ge=0, description="Its size.")
    sha256: Digest = Field(description="SHA-256 of its bytes.")
    media_type: Text = Field(description="By its name and first bytes, such as image/png.")


class TaskResult(StatusModel):
    """What came out of the script. The names and texts of an exception are its own words."""

    exit_code: int | None = Field(default=None, description="Exit status; absent where a signal ended it.")
    signal: Text = Field(default="", description="Name of the signal that ended it, such as SIGKILL.")
    error_type: str = Field(
        default="",
        max_length=1024,
        description="Class of an uncaught exception; empty on success and sys.exit.",
    )
    error_message: str = Field(
        default="", max_length=TRACEBACK_CHARACTERS, description="Text of an uncaught exception."
    )
    traceback: str = Field(default="", max_length=TRACEBACK_CHARACTERS, description="The last 4 KiB of its traceback.")
    stdout: Stream = Field(default=Stream(), description="Standard output.")
    stderr: Stream = Field(
        default=Stream(), description="Standard error; of a failed install, the installer's last 16 KiB."
    )
    artifacts: Annotated[tuple[Artifact, ...], Field(max_length=ARTIFACTS)] = Field(
        default=(), description="Files left in $SANDYARD_OUTPUT_DIR, without links, pipes and devices."
    )


class TaskStatus(StatusModel):
    """What became of the task so far."""

    observed_generation: int | None = Field(
        default=None, ge=0, description="The metadata.generation that this status was derived from."
    )
    phase: TaskPhase | None = Field(default=None, description="Where the task is, for people.")
    reason: str = Field(
        default="", max_length=REASON_CHARACTERS, description="Why it is there, in one word for programs."
    )
    message: str = Field(
        default="", max_length=MESSAGE_CHARACTERS, description="Why it is there, in a sentence for people."
    )
    conditions: Conditions = Field(default=(), description="Accepted, Scheduled, Installed, Finished, Succeeded.")
    run: Run | None = Field(default=None, description="The point of no return: set before the script may start.")
    node_name: Text | None = Field(default=None, description="The pod's node.")
    warm: bool | None = Field(default=None, description="Whether the pod was taken from a pool.")
    image: str | None = Field(default=None, max_length=1024, description="The runner's image, as resolved.")
    code_sha256: Digest | None = Field(default=None, alias="codeSHA256", description="SHA-256 of the script.")
    class_generation: int | None = Field(
        default=None, ge=0, description="The class's metadata.generation when the task was accepted."
    )
    start_time: AwareDatetime | None = Field(default=None, description="When the script started.")
    completion_time: AwareDatetime | None = Field(default=None, description="When the task finished.")
    timings: Timings | None = Field(default=None, description="How long each part took.")
    packages: Packages = Field(default=(), description="What the dependencies were resolved to.")
    lock_sha256: Digest | None = Field(default=None, alias="lockSHA256", description="SHA-256 of the resolved lock.")
    warnings: Annotated[tuple[Annotated[str, Field(max_length=1024)], ...], Field(max_length=WARNINGS)] = Field(
        default=(), description="What was accepted but ignored, such as [tool] tables."
    )
    result: TaskResult | None = Field(default=None, description="What came out of the script.")
    isolation: Isolation | None = Field(default=None, description="What was in force when the script started.")
