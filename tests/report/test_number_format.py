import math

import pytest

from scalestudy.analysis.estimate import Estimate
from scalestudy.report.number_format import (
    decimals,
    format_number,
    span,
    time_unit,
    with_interval,
)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1234.5, 1, "1,234.5"),
        (-0.25, 2, "−0.25"),
        (123456789012.0, 0, "123,456,789,012"),
        # A tie goes up, also where arithmetic left it a little below.
        *((value, 2, "0.63") for value in (0.625, 0.625 - 2e-16, 1 / 1.6)),
        *((value, 2, "n/a") for value in (None, math.nan, math.inf)),
    ],
)
def test_numbers_have_thousands_and_a_true_minus(value, digits, text):
    assert format_number(value, digits) == text


@pytest.mark.parametrize(
    ("estimate", "digits", "text"),
    [
        ((6.64, 6.53, 6.75), 2, "6.64 ± 0.11"),
        ((6.64,), 2, "6.64"),
        ((6.64, 6.6399, 6.6401), 2, "6.64 ± <0.01"),
        ((1.0, 1.0, 1.0), 2, "1.00"),
        # One that reaches further to one side is told by its ends, unless rounding hides it.
        ((75.0, 30.0, 187.0), 1, "75.0 (30.0–187.0)"),
        ((0.990, 0.962, 1.0), 3, "0.990 (0.962–1.000)"),
        ((0.95, 0.948, 0.951), 2, "0.95 ± <0.01"),
        ((0.95, 0.930, 0.966), 2, "0.95 ± 0.02"),
    ],
)
def test_an_interval_is_half_of_it_to_each_side_or_its_ends(estimate, digits, text):
    assert with_interval(Estimate(*estimate), digits) == text


def test_the_ends_of_an_interval_are_told_from_a_minus():
    ends = [span(Estimate(0.5, *ends), 1) for ends in ((0.4, 0.6), (-0.4, 1.4), ())]
    assert ends == ["0.4–0.6", "−0.4 to 1.4", None]


def test_a_column_has_one_unit_and_one_number_of_decimals():
    assert (time_unit([3.0, 7547.0]), time_unit([])) == (("min", 60.0), ("s", 1.0))
    assert [decimals([value, 900]) for value in (0.02, 0.7, 12, 345)] == [3, 2, 1, 0]
