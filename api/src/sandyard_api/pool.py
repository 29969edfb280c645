"""SandboxPool: pods kept warm. A pod leaves its pool once, to one owner, and is deleted after it."""

from typing import Annotated, Final, Literal

from pydantic import Field, WithJsonSchema

from sandyard_api.conditions import Conditions, Metadata
from sandyard_api.fields import ClassName, Dependencies
from sandyard_api.limits import MAX_FIELD_COUNT
from sandyard_api.resources import Resources
from sandyard_api.schema import INT_OR_STRING, UNIQUE, SpecModel, StatusModel

MAX_REPLICAS: Final = 10_000
SHARE_PATTERN: Final = r"^(100|[0-9]{1,2})%$"

ImportName = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$")]
CountOrShare = Annotated[
    Annotated[int, Field(ge=0, le=MAX_REPLICAS)] | Annotated[str, Field(pattern=SHARE_PATTERN)],
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            INT_OR_STRING: True,
            "minimum": 0,
            "maximum": MAX_REPLICAS,
            "maxLength": 4,
            "pattern": SHARE_PATTERN,
        }
    ),
]


class PoolSpec(SpecModel):
    """The warm pods that are wanted."""

    sandbox_class_name: ClassName = Field(
        default="default", description="The SandboxClass that sets image, index and limits."
    )
    replicas: int = Field(default=1, ge=0, le=MAX_REPLICAS, description="How many pods are kept warm.")
    dependencies: Dependencies = Field(
        default=(),
        description="Requirements installed ahead; a task whose block these satisfy takes a warm pod.",
    )
    preload: Annotated[tuple[ImportName, ...], Field(max_length=MAX_FIELD_COUNT, json_schema_extra=UNIQUE)] = Field(
        default=(), description="Modules imported ahead, after lock-down."
    )
    resources: Resources | None = Field(
        default=None, description="Resources of each pod's interpreter; the class's where absent."
    )
    max_unavailable: CountOrShare = Field(
        default="25%",
        description="How many pods, or which share, may be missing while a change of the pool is rolled out.",
    )


class PoolStatus(StatusModel):
    """The warm pods as they are."""

    replicas: int = Field(default=0, ge=0, description="Pods of the pool that nobody has claimed.")
    ready_replicas: int = Field(default=0, ge=0, description="Those that can be claimed now.")
    selector: str = Field(default="", max_length=1024, description="Labels of the pods, for autoscalers.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="The metadata.generation that this status was derived from."
    )
    conditions: Conditions = Field(default=(), description="Ready.")


class SandboxPool(StatusModel):
    """Pods kept warm, each for one task or session of this namespace."""

    api_version: Literal["sandyard.dev/v1alpha1"] = "sandyard.dev/v1alpha1"
    kind: Literal["SandboxPool"] = "SandboxPool"
    metadata: Metadata
    spec: PoolSpec = Field(default=PoolSpec(), description="The warm pods that are wanted.")
    status: PoolStatus | None = Field(default=None, description="The warm pods as they are.")
