"""Where the pods of a class may run: Kubernetes' own scheduling types, bounded and described.

They are spelled out rather than left open, so that the API server checks them when the class is written and
not when a user's pod is made.
"""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from sandyard_api.limits import LABEL_CHARACTERS, NAME_CHARACTERS
from sandyard_api.schema import ONE_VALUE, SpecModel

MAX_TERMS: Final = 16
MAX_VALUES: Final = 64
MAX_WEIGHT: Final = 100
KEY_CHARACTERS: Final = NAME_CHARACTERS + 1 + LABEL_CHARACTERS  # prefix/name

LabelKey = Annotated[str, Field(min_length=1, max_length=KEY_CHARACTERS)]
LabelValue = Annotated[str, Field(max_length=LABEL_CHARACTERS)]
Labels = Annotated[dict[str, LabelValue], Field(max_length=MAX_VALUES, json_schema_extra=ONE_VALUE)]
Values = Annotated[tuple[LabelValue, ...], Field(max_length=MAX_VALUES)]


class LabelOperator(StrEnum):
    """How a label is compared."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class NodeOperator(StrEnum):
    """How a node's label or field is compared."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


class TolerationOperator(StrEnum):
    """How a taint is compared."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    """What a taint does."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class LabelRequirement(SpecModel):
    """One requirement on labels."""

    key: LabelKey = Field(description="The label.")
    operator: LabelOperator = Field(description="In, NotIn, Exists or DoesNotExist.")
    values: Values = Field(default=(), description="Values of In and NotIn.")


class LabelSelector(SpecModel):
    """Objects by their labels; an empty one selects all."""

    match_labels: Labels = Field(default_factory=dict, description="Labels that must be there.")
    match_expressions: Annotated[tuple[LabelRequirement, ...], Field(max_length=MAX_TERMS)] = Field(
        default=(), description="Requirements that must all hold."
    )


class NodeRequirement(SpecModel):
    """One requirement on a node."""

    key: LabelKey = Field(description="The label or field.")
    operator: NodeOperator = Field(description="In, NotIn, Exists, DoesNotExist, Gt or Lt.")
    values: Values = Field(default=(), description="Values to compare with.")


NodeRequirements = Annotated[tuple[NodeRequirement, ...], Field(max_length=MAX_TERMS)]


class NodeTerm(SpecModel):
    """Requirements on one node that must all hold."""

    match_expressions: NodeRequirements = Field(default=(), description="Requirements on labels.")
    match_fields: NodeRequirements = Field(default=(), description="Requirements on fields.")


class NodeSelector(SpecModel):
    """Nodes by terms, of which one must hold."""

    node_selector_terms: Annotated[tuple[NodeTerm, ...], Field(min_length=1, max_length=MAX_TERMS)] = Field(
        description="The terms."
    )


class PreferredNode(SpecModel):
    """A preference for nodes."""

    weight: int = Field(ge=1, le=MAX_WEIGHT, description="1 to 100.")
    preference: NodeTerm = Field(description="The preferred nodes.")


class NodeAffinity(SpecModel):
    """Nodes the pods need or prefer."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = Field(
        default=None, description="Nodes that the pods need."
    )
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredNode, ...], Field(max_length=MAX_TERMS)
    ] = Field(default=(), description="Nodes that the pods prefer.")


class PodTerm(SpecModel):
    """Other pods, near to or away from which the pods are placed."""

    label_selector: LabelSelector | None = Field(default=None, description="The other pods.")
    namespaces: Values = Field(default=(), description="Their namespaces; the pod's own where empty.")
    namespace_selector: LabelSelector | None = Field(default=None, description="Their namespaces by labels.")
    topology_key: LabelKey = Field(description="Node label that says what near means.")
    match_label_keys: Values = Field(default=(), description="Labels whose values must be as the pod's own.")
    mismatch_label_keys: Values = Field(default=(), description="Labels whose values must differ from the pod's.")


class PreferredPods(SpecModel):
    """A preference about other pods."""

    weight: int = Field(ge=1, le=MAX_WEIGHT, description="1 to 100.")
    pod_affinity_term: PodTerm = Field(description="The other pods.")


class PodAffinity(SpecModel):
    """Other pods that the pods need or prefer to be near to, or away from."""

    required_during_scheduling_ignored_during_execution: Annotated[tuple[PodTerm, ...], Field(max_length=MAX_TERMS)] = (
        Field(default=(), description="What the pods need.")
    )
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredPods, ...], Field(max_length=MAX_TERMS)
    ] = Field(default=(), description="What the pods prefer.")


class Affinity(SpecModel):
    """Scheduling constraints, as in a pod."""

    node_affinity: NodeAffinity | None = Field(default=None, description="About nodes.")
    pod_affinity: PodAffinity | None = Field(default=None, description="Near other pods.")
    pod_anti_affinity: PodAffinity | None = Field(default=None, description="Away from other pods.")


class Toleration(SpecModel):
    """A taint that the pods tolerate, as in a pod."""

    key: str = Field(default="", max_length=KEY_CHARACTERS, description="The taint; every one where empty.")
    operator: TolerationOperator = Field(default=TolerationOperator.EQUAL, description="Equal or Exists.")
    value: LabelValue = Field(default="", description="Value of Equal.")
    effect: TaintEffect | None = Field(default=None, description="The taint's effect; every one where absent.")
    toleration_seconds: int | None = Field(default=None, description="How long NoExecute is tolerated.")
