"""Kubernetes quantities, exactly: ``100m``, ``1.5Gi``, ``2e3``, compared and rounded as the API server does.

The value of a quantity is a Decimal of at most nine decimal places, rounded up, and capped at 2^63 - 1
(apimachinery, ``resource.ParseQuantity``). Exponents are bounded before any arithmetic. Imports pydantic for
the field types only.
"""

import re
from decimal import ROUND_CEILING, Context, Decimal
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from sandyard_api.schema import INT_OR_STRING

MAX_CHARACTERS: Final = 32
MAX_VALUE: Final = Decimal(2**63 - 1)
SMALLEST: Final = Decimal("1e-9")
MAX_EXPONENT: Final = 99  # far beyond both bounds, so the rest of the digits cannot matter
PATTERN: Final = r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i|[numkMGTPE])|([eE][+-]?[0-9]{1,4}))?$"

_NUMBER: Final = re.compile(r"\+?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(.*)", re.ASCII)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]{1,4})", re.ASCII)
_SCALES: Final = {
    **{
        suffix: Decimal(1).scaleb(power)
        for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{f"{suffix}i": Decimal(1024 ** (power + 1)) for power, suffix in enumerate("KMGTPE")},
    "": Decimal(1),
}
_EXACT: Final = Context(prec=4 * MAX_CHARACTERS + MAX_EXPONENT, rounding=ROUND_CEILING)


def parse(text: str) -> Decimal:
    """Return the value of a non-negative quantity; raises ValueError where it is none."""
    number = _NUMBER.fullmatch(text) if len(text) <= MAX_CHARACTERS else None
    if number is None:
        raise ValueError(f"{text[:MAX_CHARACTERS]!r} is not a quantity such as 500m, 2 or 1Gi")
    value = _EXACT.multiply(Decimal(number[1]), _scale(text, number[2]))
    if value > MAX_VALUE:
        return MAX_VALUE
    return value.quantize(SMALLEST, context=_EXACT)


def whole(text: str) -> int:
    """Return a quantity in whole units (bytes, cores), rounded up."""
    return int(parse(text).to_integral_value(context=_EXACT, rounding=ROUND_CEILING))


def milli(text: str) -> int:
    """Return a quantity in thousandths (of a core), rounded up."""
    return int(_EXACT.scaleb(parse(text), 3).to_integral_value(context=_EXACT, rounding=ROUND_CEILING))


def _scale(text: str, suffix: str) -> Decimal:
    if suffix in _SCALES:
        return _SCALES[suffix]
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise ValueError(f"{text!r} has no unit that Kubernetes knows: use m, k, M, G, T, Ki, Mi, Gi or Ti")
    return Decimal(1).scaleb(max(-MAX_EXPONENT, min(int(exponent[1]), MAX_EXPONENT)))


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


_SCHEMA: Final = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    INT_OR_STRING: True,
    "pattern": PATTERN,
    "maxLength": MAX_CHARACTERS,
}

Quantity = Annotated[
    str, BeforeValidator(_as_text), Field(max_length=MAX_CHARACTERS, pattern=PATTERN), WithJsonSchema(_SCHEMA)
]
