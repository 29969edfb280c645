"""A condition as Kubernetes knows it (meta/v1 Condition), and the model of an object's metadata as read."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from sandyard_api.limits import MESSAGE_CHARACTERS, NAME_CHARACTERS, REASON_CHARACTERS
from sandyard_api.schema import StatusModel, keyed_by


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(StatusModel):
    """One aspect of the object's state."""

    type: str = Field(
        max_length=NAME_CHARACTERS,
        description="Type of the condition, unique in the list.",
    )
    status: ConditionStatus = Field(description="Whether it holds.")
    reason: str = Field(
        min_length=1,
        max_length=REASON_CHARACTERS,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        description="Why, in one word for programs.",
    )
    message: str = Field(max_length=MESSAGE_CHARACTERS, description="Why, in a sentence for people.")
    last_transition_time: AwareDatetime = Field(description="When status last changed.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="The metadata.generation that this condition was derived from."
    )


Conditions = Annotated[
    tuple[Condition, ...],
    Field(max_length=16, json_schema_extra=keyed_by("type")),
]


class Metadata(StatusModel):
    """What is read of an object's metadata; the API server always sets it."""

    name: str
    namespace: str = ""  # of a cluster-scoped object
    uid: str
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
