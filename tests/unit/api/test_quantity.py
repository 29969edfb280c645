"""Quantities have the values that Kubernetes gives them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandyard_api.quantity import MAX_VALUE, milli, parse, whole


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        ("2", "2"),
        ("+2", "2"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("1.", "1"),
        ("100m", "0.1"),
        ("1500m", "1.5"),
        ("5u", "0.000005"),
        ("7n", "0.000000007"),
        ("1k", "1000"),
        ("1M", "1000000"),
        ("1G", "1000000000"),
        ("1T", "1000000000000"),
        ("1P", "1000000000000000"),
        ("1E", "1000000000000000000"),
        ("1Ki", "1024"),
        ("1.5Gi", "1610612736"),
        ("0.1Ki", "102.4"),
        ("1Ti", "1099511627776"),
        ("1Pi", "1125899906842624"),
        ("1Ei", "1152921504606846976"),
        ("2e3", "2000"),
        ("2E3", "2000"),
        ("2e+3", "2000"),
        ("2e-3", "0.002"),
        ("0.0000000001", "0.000000001"),
        ("1e-9999", "0.000000001"),
        ("0e9999", "0"),
        ("8Ei", "9223372036854775807"),
        ("1e9999", "9223372036854775807"),
    ],
)
def test_a_quantity_has_its_value(text: str, value: str) -> None:
    assert parse(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "m",
        ".",
        "-1",
        "1 Gi",
        "1gi",
        "1KB",
        "1K",
        "1mi",
        "1e",
        "1e1.5",
        "1e99999",
        "0x1",
        "1,5",
        "٣",
        "1\n",
        "9" * 33,
    ],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantity|unit"):
        parse(text)


@pytest.mark.parametrize(("text", "amount"), [("1", 1), ("1100m", 2), ("0.5Ki", 512), ("1n", 1), ("0", 0)])
def test_whole_units_are_rounded_up(text: str, amount: int) -> None:
    assert whole(text) == amount


@pytest.mark.parametrize(("text", "amount"), [("1", 1000), ("100m", 100), ("0.0001", 1), ("8Ei", (2**63 - 1) * 1000)])
def test_thousandths_are_rounded_up(text: str, amount: int) -> None:
    assert milli(text) == amount


@given(st.decimals(min_value=0, max_value=10**12, places=9), st.sampled_from(["", "k", "Ki", "m", "Gi"]))
def test_a_quantity_never_loses_what_it_can_hold(number: Decimal, unit: str) -> None:
    scale = {"": Decimal(1), "k": Decimal(1000), "Ki": Decimal(1024), "m": Decimal("0.001"), "Gi": Decimal(2**30)}
    exact = number * scale[unit]
    found = parse(f"{number:f}{unit}")
    assert found == MAX_VALUE if exact > MAX_VALUE else 0 <= found - exact < Decimal("1e-9")


@given(st.text(max_size=40))
def test_any_text_is_a_quantity_or_a_value_error(text: str) -> None:
    try:
        assert 0 <= parse(text) <= MAX_VALUE
    except ValueError:
        return
