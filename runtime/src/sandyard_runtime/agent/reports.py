"""What a supervisor may report, as models: anything else ends the channel.

Strict types, bounded texts and counts; unknown fields are ignored.
"""

import json
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from sandyard_api.wire import Isolation, Outcome

LARGEST: Final = 1 << 53  # bytes, milliseconds: what JSON carries exactly
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Short = Annotated[str, Field(max_length=1024)]
Text = Annotated[str, Field(max_length=32 * 1024)]


class StreamName(StrEnum):
    """A run's two streams."""

    STDOUT = "stdout"
    STDERR = "stderr"


class _Report(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, frozen=True, extra="ignore")


class Ready(_Report):
    """The supervisor is there and has probed what it can enforce."""

    type: Literal["ready"]
    python: Short
    isolation: Isolation


class Placed(_Report):
    """The inputs are in the workspace."""

    type: Literal["placed"]


class PlaceFailed(_Report):
    """An input could not be written; nothing ran."""

    type: Literal["placeFailed"]
    message: Short


class Started(_Report):
    """The run's process is there, locked down; the next thing it does is the user's code."""

    type: Literal["started"]
    isolation: Isolation


class Output(_Report):
    """A piece of a stream; the bytes are the payload."""

    type: Literal["output"]
    stream: StreamName


class Exited(_Report):
    """How the run ended, by waitid and counters; the error texts are the script's own words."""

    type: Literal["exited"]
    outcome: Outcome
    exit_code: int | None = None
    signal: Short = ""
    error_type: Short = ""
    error_message: Text = ""
    traceback: Text = ""
    stdout_bytes: Count
    stderr_bytes: Count
    run_milliseconds: Count
    message: Short = ""


class ArtifactPiece(_Report):
    """A piece of a file left in the output directory; the bytes are the payload."""

    type: Literal["artifact"]
    path: Annotated[str, Field(min_length=1, max_length=4096)]
    last: bool


class Finished(_Report):
    """Nothing of the run is left and nothing more will come."""

    type: Literal["finished"]
    warnings: Annotated[tuple[Short, ...], Field(max_length=64)] = ()


RunReport = Placed | PlaceFailed | Started | Output | Exited | ArtifactPiece | Finished
Report = Annotated[Ready | RunReport, Field(discriminator="type")]
_ADAPTER: Final[TypeAdapter[Ready | RunReport]] = TypeAdapter(Report)


def read_report(header: bytes) -> Ready | RunReport:
    """Read a frame's header; raises ValueError (or RecursionError) for what is no report."""
    # A script may put half a surrogate pair into its words; JSON carries it, no text of ours may.
    whole = json.dumps(json.loads(header), ensure_ascii=False).encode(errors="replace")
    return _ADAPTER.validate_json(whole, strict=True)
