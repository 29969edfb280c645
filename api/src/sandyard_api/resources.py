"""Compute resources of the runner container: what a task asks for and what a class gives and bounds."""

from typing import Final, Self

from pydantic import ConfigDict, Field, model_validator

from sandyard_api.quantity import Quantity, parse
from sandyard_api.schema import Rule, SpecModel, rules

NAMES: Final = ("cpu", "memory", "ephemeral-storage")


class ResourceList(SpecModel):
    """Amounts of each resource, as Kubernetes quantities."""

    cpu: Quantity | None = Field(default=None, description="Cores, such as 500m or 2.")
    memory: Quantity | None = Field(default=None, description="Bytes, such as 500Mi.")
    ephemeral_storage: Quantity | None = Field(
        default=None,
        alias="ephemeral-storage",
        description="Bytes that /workspace, /tmp and /dev/shm may hold together, such as 1Gi.",
    )

    def get(self, name: str) -> str | None:
        """Return the amount of a resource by its Kubernetes name."""
        return {"cpu": self.cpu, "memory": self.memory, "ephemeral-storage": self.ephemeral_storage}[name]


def _within_limit(name: str) -> Rule:
    field = name.replace("-", "__dash__")
    both = f"has(self.requests) && has(self.requests.{field}) && has(self.limits) && has(self.limits.{field})"
    compare = f"quantity(string(self.requests.{field})).compareTo(quantity(string(self.limits.{field}))) <= 0"
    return Rule(f"!({both}) || {compare}", f"the request of {name} must not exceed its limit", "requests")


class Resources(SpecModel):
    """Requests and limits, as in a container."""

    model_config = ConfigDict(json_schema_extra=rules(*map(_within_limit, NAMES)))

    requests: ResourceList | None = Field(
        default=None,
        description="What the scheduler sets aside; where absent, the class's, at most the limit.",
    )
    limits: ResourceList | None = Field(default=None, description="What cannot be exceeded; where absent, the class's.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.requests is None or self.limits is None:
            return self
        for name in NAMES:
            request, limit = self.requests.get(name), self.limits.get(name)
            if request is not None and limit is not None and parse(request) > parse(limit):
                raise ValueError(f"the request of {name} must not exceed its limit")
        return self
