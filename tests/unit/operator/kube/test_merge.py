"""A merge patch turns one value into another, whatever the two are (RFC 7386)."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sandyard_operator.kube.merge import merge_patch

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
KEYS = st.sampled_from("abc")
# A null in a patch removes a member, so no member of an object can be null.
OBJECTS = st.recursive(
    st.booleans() | st.integers() | st.lists(SCALARS, max_size=2),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def merged(target: Any, patch: Any) -> Any:
    """Apply a patch as the RFC's pseudo-code does."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


@given(st.dictionaries(KEYS, OBJECTS, max_size=3), st.dictionaries(KEYS, OBJECTS, max_size=3))
def test_patch_gives_the_new_value(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert merged(old, merge_patch(old, new)) == new


@given(st.dictionaries(KEYS, OBJECTS, max_size=3))
def test_nothing_changed_is_nothing_sent(value: dict[str, Any]) -> None:
    assert merge_patch(value, value) == {}
