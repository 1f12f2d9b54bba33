import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.analysis.scales import ARCSINE, LINEAR, LOGARITHM, geometric_mean, is_bounded, quality_scale


@pytest.mark.parametrize(
    "name",
    [
        *("iou", "accuracy", "sparse_categorical_accuracy", "auc", "auc_1", "f1", "f1_score", "dice"),
        *("mean_io_u", "mean_iou", "fbeta_score", "precision_2", "Recall", "balanced-accuracy", "dice_coef"),
    ],
)
def test_metrics_between_0_and_1_are_known_by_their_names(name):
    assert is_bounded(name)


@pytest.mark.parametrize("name", ["loss", "mean_absolute_error", "psnr", "perplexity", "r2_score", "focal"])
def test_other_metrics_are_not(name):
    assert not is_bounded(name)
    assert quality_scale(name, [0.2, 0.9]) is LINEAR


def test_values_beyond_the_bounds_belie_the_name():
    assert quality_scale("accuracy", [97.5, 98.1]) is LINEAR
    assert quality_scale("accuracy", [0.975, 1.0, math.nan]) is ARCSINE


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
