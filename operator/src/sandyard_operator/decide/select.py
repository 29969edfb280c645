"""Whether labels match a selector, as Kubernetes matches them."""

from collections.abc import Mapping
from typing import assert_never

from sandyard_api.scheduling import LabelOperator, LabelRequirement, LabelSelector


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Tell whether all of the selector holds; an empty one selects everything."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _holds(requirement, labels) for requirement in selector.match_expressions
    )


def _holds(requirement: LabelRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case LabelOperator.IN:
            return value in requirement.values
        case LabelOperator.NOT_IN:
            return value not in requirement.values
        case LabelOperator.EXISTS:
            return value is not None
        case LabelOperator.DOES_NOT_EXIST:
            return value is None
    assert_never(requirement.operator)
