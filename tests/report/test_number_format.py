import math

import pytest

from scalestudy.analysis.statistics import Estimate
from scalestudy.report.number_format import decimals, number, span, time_unit, with_interval


def test_numbers_have_thousands_and_a_true_minus():
    assert number(1234.5, 1) == "1,234.5"
    assert number(-0.25, 2) == "−0.25"


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_what_is_no_number_is_not_available(value):
    assert number(value, 2) == "n/a"


def test_an_interval_is_half_of_it_to_each_side():
    assert with_interval(Estimate(6.64, 6.53, 6.75), 2) == "6.64 ± 0.11"
    assert with_interval(Estimate(6.64), 2) == "6.64"
    assert with_interval(Estimate(6.64, 6.6399, 6.6401), 2) == "6.64 ± <0.01"
    assert with_interval(Estimate(1.0, 1.0, 1.0), 2) == "1.00"


def test_an_interval_that_reaches_further_to_one_side_is_told_by_its_ends():
    assert with_interval(Estimate(75.0, 30.0, 187.0), 1) == "75.0 (30.0–187.0)"
    assert with_interval(Estimate(0.990, 0.962, 1.0), 3) == "0.990 (0.962–1.000)"
    # An asymmetry that rounding hides is not shown.
    assert with_interval(Estimate(0.95, 0.948, 0.951), 2) == "0.95 ± <0.01"
    assert with_interval(Estimate(0.95, 0.930, 0.966), 2) == "0.95 ± 0.02"


def test_the_ends_of_an_interval_are_told_from_a_minus():
    assert span(Estimate(0.5, 0.4, 0.6), 1) == "0.4–0.6"
    assert span(Estimate(0.5, -0.4, 1.4), 1) == "−0.4 to 1.4"
    assert span(Estimate(0.5), 1) is None


def test_a_column_has_one_unit_and_one_number_of_decimals():
    assert time_unit([3.0, 7547.0]) == ("min", 60.0)
    assert time_unit([]) == ("s", 1.0)
    assert [decimals([value, 900]) for value in (0.02, 0.7, 12, 345)] == [3, 2, 1, 0]


def test_a_tie_goes_up_also_where_arithmetic_left_it_a_little_below():
    assert {number(value, 2) for value in (0.625, 0.625 - 2e-16, 1 / 1.6)} == {"0.63"}
    assert number(123456789012.0, 0) == "123,456,789,012"
