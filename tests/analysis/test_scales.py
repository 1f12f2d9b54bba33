import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.analysis.scales import ARCSINE, LINEAR, LOGARITHM, decimals, geometric_mean, quality_scale


def test_what_is_not_known_to_lie_between_0_and_1_stays_on_its_own_scale_whatever_its_values():
    assert quality_scale(None, [0.2, 0.9]) is LINEAR
    assert quality_scale(False, [0.2, 0.9]) is LINEAR


def test_values_beyond_the_bounds_belie_the_knowledge():
    assert quality_scale(True, [97.5, 98.1]) is LINEAR
    assert quality_scale(True, [0.975, 1.0, math.nan]) is ARCSINE


@pytest.mark.parametrize(
    ("scale", "values", "digits"),
    [
        (ARCSINE, [0.001, 0.002], 3),
        (LINEAR, [0.0041, 0.0039], 6),
        (LINEAR, [97.5, 98.1], 1),
        (LINEAR, [-31.0, 29.0], 2),
        (LINEAR, [12_000.0], 0),
        (LINEAR, [0.0, math.nan], 3),
    ],
)
def test_a_fiftieth_of_a_metric_can_be_told(scale, values, digits):
    assert decimals(scale, values) == digits


@given(st.floats(0, 1), st.floats(0, 100))
def test_ends_of_a_bounded_metric_stay_within_its_bounds(centre, reach):
    low, high = ARCSINE.ends(centre, reach)
    assert 0 <= low <= centre <= high <= 1


@given(st.floats(1e-6, 1e6), st.floats(0, 50))
def test_ends_of_a_positive_quantity_stay_positive(centre, reach):
    low, high = LOGARITHM.ends(centre, reach)
    assert 0 < low <= centre <= high


def test_without_reach_both_ends_are_the_centre_itself():
    assert all(scale.ends(0.9, 0.0) == (0.9, 0.9) for scale in (LINEAR, LOGARITHM, ARCSINE))


def test_the_geometric_mean_of_equal_values_is_that_value():
    assert geometric_mean([140.0, 140.0, 140.0]) == 140.0
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
