import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.analysis.statistics import (
    ARCSINE,
    LINEAR,
    LOGARITHM,
    NOTHING,
    Contrast,
    Estimate,
    decimals,
    geometric_mean,
    holm,
    quality_scale,
)


def test_an_estimate_contains_what_lies_strictly_inside_of_its_interval():
    assert Estimate(0.72, 0.45, 1.16).contains(0.7)
    assert not Estimate(0.72, 0.70, 0.74).contains(0.7)
    assert not Estimate(0.72).contains(0.72)


def test_products_of_independent_estimates_add_their_reaches_by_squares():
    product = Estimate(2.0, 1.0, 4.0).times(Estimate(3.0, 1.5, 6.0))
    assert product.value == 6
    assert product.high / 6 == pytest.approx(6 / product.low) == pytest.approx(2 ** math.sqrt(2))
    assert Estimate(4.0, 2.0, 5.0).inverse() == Estimate(0.25, 0.2, 0.5)
    assert (Estimate(0.0).inverse(), NOTHING.times(product)) == (NOTHING, NOTHING)


def test_the_p_value_is_below_five_per_cent_where_the_interval_leaves_zero_out():
    for change in (0.1, 0.5, 1.0, 2.0, 4.0):
        contrast = Contrast(change, error=0.4, freedom=5, pairs=3)
        assert (contrast.p_value < 0.05) == (not contrast.estimate.contains(0.0))


def test_corrected_p_values_are_those_of_holm():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


@pytest.mark.parametrize(
    ("bounded", "values", "scale"),
    [
        (None, [0.2, 0.9], LINEAR),
        (False, [0.2, 0.9], LINEAR),
        (True, [97.5, 98.1], LINEAR),
        (True, [0.975, 1.0, math.nan], ARCSINE),
    ],
)
def test_only_what_is_known_to_lie_between_0_and_1_and_does_is_taken_as_a_share(bounded, values, scale):
    assert quality_scale(bounded, values) is scale


@pytest.mark.parametrize(
    ("scale", "values", "digits"),
    [
        (ARCSINE, [0.001, 0.002], 3),
        (LINEAR, [0.0041, 0.0039], 6),
        (LINEAR, [97.5, 98.1], 1),
        (LINEAR, [12_000.0], 0),
        (LINEAR, [0.0, math.nan], 3),
    ],
)
def test_a_fiftieth_of_a_metric_can_be_told(scale, values, digits):
    assert decimals(scale, values) == digits


@given(st.floats(0, 1), st.floats(0, 100), st.floats(1e-6, 1e6), st.floats(0, 50))
def test_ends_stay_within_what_a_scale_holds(share, reach, positive, factor):
    low, high = ARCSINE.ends(share, reach)
    assert 0 <= low <= share <= high <= 1
    low, high = LOGARITHM.ends(positive, factor)
    assert 0 < low <= positive <= high
    assert all(scale.ends(0.9, 0.0) == (0.9, 0.9) for scale in (LINEAR, LOGARITHM, ARCSINE))


def test_the_geometric_mean_of_equal_values_is_that_value():
    assert geometric_mean([140.0, 140.0, 140.0]) == 140.0
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
