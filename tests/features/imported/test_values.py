"""Numbers as others write them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.features.imported.values import clock, number, whole


@pytest.mark.parametrize(
    ("text", "comma", "value"),
    [
        ("1234.5", False, 1234.5), ("66,176", False, 66176.0),
        ("1,234.5", False, 1234.5), ("93.5 %", False, 93.5),
        (" 7 ", False, 7.0), ("\u22123", False, -3.0),
        ("1e3", False, 1000.0),
        ("1,5", True, 1.5), ("1.234,5", True, 1234.5), ("1.5", True, 1.5),
        (3, False, 3.0), (None, False, None), (True, False, None), ("abc", False, None),
        ("1_000", False, None),
        ("1,5", False, None), ("", False, None),
    ],
)  # fmt: skip
def test_numbers_are_read_with_their_separators(text: object, comma: bool, value: float | None):
    assert number(text, comma) == value


def test_what_is_not_finite_stays_so_and_is_no_count():
    assert math.isnan(number("nan") or 0)
    assert whole("inf") is None
    assert whole("2.5") is None
    assert whole("8.0") == 8
    assert whole("1e300") is None


def test_times_on_a_clock_are_seconds():
    assert clock("1:02:05") == 3725
    assert clock("2:05.5") == 125.5
    assert clock("noon") is None


@given(st.floats(allow_nan=False))
def test_a_written_number_comes_back(value: float):
    assert number(repr(value)) == value
