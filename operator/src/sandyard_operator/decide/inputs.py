"""What a task names elsewhere: keys of ConfigMaps and Secrets, and the values read for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from sandyard_api.fields import KeyRef
from sandyard_api.task import TaskSpec


class Source(StrEnum):
    """Kind of the object that holds a value."""

    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"  # noqa: S105 - a kind


@dataclass(frozen=True, slots=True)
class Reference:
    """One key of one object."""

    source: Source
    name: str
    key: str

    def __str__(self) -> str:
        """Name it for a message."""
        return f"key {self.key!r} of {self.source} {self.name!r}"


Inputs: TypeAlias = Mapping[Reference, bytes | None]  # None: the object or the key is not there


def config_map(ref: KeyRef) -> Reference:
    """Refer to a ConfigMap's key."""
    return Reference(Source.CONFIG_MAP, ref.name, ref.key)


def secret(ref: KeyRef) -> Reference:
    """Refer to a Secret's key."""
    return Reference(Source.SECRET, ref.name, ref.key)


def references(spec: TaskSpec) -> Mapping[str, Reference]:
    """Return what has to be read, by the field that names it."""
    found: dict[str, Reference] = {}
    if spec.code_from is not None:
        found["spec.codeFrom"] = config_map(spec.code_from.config_map_key_ref)
    if spec.stdin_from is not None and spec.stdin_from.config_map_key_ref is not None:
        found["spec.stdinFrom"] = config_map(spec.stdin_from.config_map_key_ref)
    for index, file in enumerate(spec.files):
        if file.config_map_key_ref is not None:
            found[f"spec.files[{index}]"] = config_map(file.config_map_key_ref)
    for index, variable in enumerate(spec.env):
        if variable.value_from is not None:
            found[f"spec.env[{index}]"] = secret(variable.value_from.secret_key_ref)
    return found


def blob_fields(spec: TaskSpec) -> tuple[str, ...]:
    """Return the fields that name a blob of the data API."""
    fields = [f"spec.files[{index}]" for index, file in enumerate(spec.files) if file.blob_ref is not None]
    if spec.stdin_from is not None and spec.stdin_from.blob_ref is not None:
        fields.insert(0, "spec.stdinFrom")
    return tuple(fields)
