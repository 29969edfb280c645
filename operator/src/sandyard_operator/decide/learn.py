"""What a class's status tells of its image, learnt from the first agent that answered in a pod of it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sandyard_api.conditions import Condition, ConditionStatus
from sandyard_api.limits import PACKAGES
from sandyard_api.observed import Package
from sandyard_api.reasons import ClassCondition
from sandyard_api.sandbox_class import ClassStatus, SandboxClass
from sandyard_api.wire import AgentStatus


def is_known(sandbox_class: SandboxClass) -> bool:
    """Tell whether the class's status is about its present spec."""
    status = sandbox_class.status
    return status is not None and status.observed_generation == sandbox_class.metadata.generation


def known_python(sandbox_class: SandboxClass) -> str:
    """Return the image's Python version where it is known."""
    if sandbox_class.status is None or not is_known(sandbox_class):
        return ""
    return sandbox_class.status.python


def class_status(sandbox_class: SandboxClass, told: AgentStatus, now: datetime) -> Mapping[str, Any]:
    """Build the class's status from an agent's."""
    old = () if sandbox_class.status is None else sandbox_class.status.conditions
    since = next(
        (c.last_transition_time for c in old if c.type == ClassCondition.READY and c.status is ConditionStatus.TRUE),
        now,
    )
    generation = sandbox_class.metadata.generation
    ready = Condition(
        type=ClassCondition.READY,
        status=ConditionStatus.TRUE,
        reason="ImageKnown",
        message="A pod of the class has answered.",
        last_transition_time=since,
        observed_generation=generation,
    )
    packages = tuple(Package(name=p.name, version=p.version) for p in told.packages[:PACKAGES])
    status = ClassStatus(observed_generation=generation, conditions=(ready,), python=told.python, packages=packages)
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)
