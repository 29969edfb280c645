"""Turn a model's JSON schema into a structural one: what the API server accepts in a CRD, and nothing else.

No ``$ref``, no null, no titles, no closed maps (apiextensions, structural schemas). Pure; knows nothing of a
particular kind.
"""

from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from sandyard_api.schema import LIST_TYPE, VALIDATIONS

_DROPPED: Final = ("$defs", "title", "additionalProperties", "default")  # the last two are put back


class _Nullless(GenerateJsonSchema):
    """An optional field is one that may be absent; null is not a value."""

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


def structural(model: type[BaseModel], *, defaults: bool = True) -> dict[str, Any]:
    """Return the structural schema of a model, with or without its defaults."""
    schema = model.model_json_schema(by_alias=True, mode="validation", schema_generator=_Nullless)
    return _node(schema, schema.get("$defs", {}), defaults=defaults)


def _node(raw: dict[str, Any], definitions: dict[str, Any], *, defaults: bool) -> dict[str, Any]:
    def child(inner: dict[str, Any]) -> dict[str, Any]:
        return _node(inner, definitions, defaults=defaults)

    raw = _inlined(raw, definitions)
    node = {key: value for key, value in raw.items() if key not in _DROPPED}
    if "properties" in raw:
        node["properties"] = {name: child(inner) for name, inner in raw["properties"].items()}
    elif isinstance(raw.get("additionalProperties"), dict):
        node["additionalProperties"] = child(raw["additionalProperties"])
    if "items" in raw:
        node["items"] = child(raw["items"])
        node.setdefault(LIST_TYPE, "atomic")
    if defaults and _has_default(raw, node):
        node["default"] = _pruned(raw["default"], node)
    return node


def _inlined(raw: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Put what a reference names in its place; what stands beside it wins, and rules of both hold."""
    if "$ref" not in raw:
        return raw
    beside = {key: value for key, value in raw.items() if key != "$ref"}
    target = _inlined(definitions[raw["$ref"].rsplit("/", 1)[-1]], definitions)
    merged = target | beside
    if VALIDATIONS in target and VALIDATIONS in beside:
        merged[VALIDATIONS] = [*target[VALIDATIONS], *beside[VALIDATIONS]]
    return merged


def _has_default(raw: dict[str, Any], node: dict[str, Any]) -> bool:
    """Tell whether a default is worth writing: absence already means null and empty."""
    default = raw.get("default")
    if isinstance(default, dict):
        fields = node.get("properties", {}).values()
        return bool(_pruned(default, node)) or any("default" in field for field in fields)
    return default is not None and default not in ("", [])


def _pruned(default: Any, node: dict[str, Any]) -> Any:
    """Leave out of an object's default what its fields fill in by themselves."""
    if not isinstance(default, dict):
        return default
    fields = node.get("properties", {})
    pruned = {name: _pruned(value, fields[name]) for name, value in default.items() if value not in (None, "", [], {})}
    return {name: value for name, value in pruned.items() if value != fields[name].get("default", {})}
