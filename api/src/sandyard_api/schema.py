"""The two roots of all resource models, and the marks that only the CRD schema knows.

A spec refuses fields it does not know; a status tolerates those of a newer operator. Rules (CEL), list types
and map types ride along as JSON-schema extras and come out of the CRD generator unchanged. Never does I/O.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

VALIDATIONS: Final = "x-kubernetes-validations"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"

Extras = dict[str, Any]

UNIQUE: Final[Extras] = {LIST_TYPE: "set"}
ONE_VALUE: Final[Extras] = {MAP_TYPE: "atomic"}  # two appliers never each own half of it


class SpecModel(BaseModel):
    """What a user writes: camelCase outside, frozen, and nothing that is not known."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, extra="forbid", frozen=True
    )


class StatusModel(SpecModel):
    """What an operator writes and another one reads, perhaps an older one."""

    model_config = ConfigDict(extra="ignore")


@dataclass(frozen=True, slots=True)
class Rule:
    """One CEL rule; ``field`` is where the error points, relative to the rule's own place."""

    cel: str
    message: str
    field: str = ""

    def render(self) -> Extras:
        """Return it as the CRD has it."""
        rendered = {"rule": self.cel, "message": self.message}
        return rendered | {"fieldPath": f".{self.field}"} if self.field else rendered


def rules(*every: Rule) -> Extras:
    """Return the extras that put rules on a model or field."""
    return {VALIDATIONS: [rule.render() for rule in every]}


def keyed_by(key: str) -> Extras:
    """Return the extras of a list whose items are told apart by a key, so that server-side apply merges."""
    return {LIST_TYPE: "map", LIST_KEYS: [key]}


def unchanged(field: str) -> str:
    """Return the CEL that a field is as it was, or as absent as it was."""
    new, old = f"self.{field}", f"oldSelf.{field}"
    return f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"


def immutable(fields: Iterable[str]) -> tuple[Rule, ...]:
    """Return the rules that keep fields as they were at creation.

    They sit on the parent: a rule on an optional field does not see its removal.
    """
    return tuple(Rule(unchanged(field), f"{field} may not change after creation", field=field) for field in fields)
