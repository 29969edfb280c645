"""A merge patch (RFC 7386) that turns one JSON value into another. Pure."""

from collections.abc import Mapping
from typing import Any


def merge_patch(old: Any, new: Any) -> Any:
    """Return what, merged into ``old``, gives ``new``; what is the same in both is left out."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    gone = dict.fromkeys(old.keys() - new.keys())
    return gone | {
        name: merge_patch(old.get(name), value) for name, value in new.items() if name not in old or old[name] != value
    }
