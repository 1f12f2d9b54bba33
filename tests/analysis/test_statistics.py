import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.analysis.statistics import (
    ARCSINE,
    LINEAR,
    LOGARITHM,
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


def test_the_p_value_is_below_five_per_cent_where_the_interval_leaves_zero_out():
    for change in (0.1, 0.5, 1.0, 2.0, 4.0):
        found = Contrast(change, error=0.4, freedom=5, pairs=3)
        assert (found.p_value < 0.05) == (not found.estimate.contains(0.0))


def test_more_pairs_settle_a_smaller_distance():
    seen = Contrast(0.1, error=0.05, freedom=6, pairs=3)
    assert seen.pairs_to_settle(1.0) == 3  # settled already
    few, many = seen.pairs_to_settle(0.08), seen.pairs_to_settle(0.04)
    assert 3 < few < many <= 50
    assert seen.pairs_to_settle(1e-4) is None
    assert Contrast(0.1).pairs_to_settle(0.1) is None


def test_the_number_of_pairs_that_is_said_to_settle_it_does():
    """Of made pairs as many as asked for leave the target out in most studies."""
    generator = np.random.default_rng(3)
    pairs = Contrast(0.2, error=0.1, freedom=4, pairs=3).pairs_to_settle(0.2)
    sigma = 0.1 * np.sqrt(3)
    left_out = 0
    for _ in range(400):
        changes = generator.normal(0.2, sigma, pairs)
        found = Contrast(changes.mean(), changes.std(ddof=1) / np.sqrt(pairs), pairs - 1, pairs).estimate
        left_out += found.low > 0
    assert left_out > 0.4 * 400


def test_corrected_p_values_are_those_of_holm():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


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
