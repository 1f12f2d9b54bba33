import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import scalestudy.analysis.variances as analysis_blocks
from scalestudy.analysis.estimate import NOTHING, Contrast, Estimate, holm
from scalestudy.analysis.scales import (
    ARCSINE,
    LINEAR,
    LOGARITHM,
    geometric_mean,
    quality_decimals,
    quality_scale,
)
from scalestudy.analysis.statistics import contrast
from scalestudy.analysis.variances import PRIOR, SINGLE, design_of, run_variance


def test_products_of_independent_estimates_add_their_reaches_by_squares():
    product = Estimate(2.0, 1.0, 4.0).times(Estimate(3.0, 1.5, 6.0))
    assert product.value == 6
    assert (
        product.high / 6
        == pytest.approx(6 / product.low)
        == pytest.approx(2 ** math.sqrt(2))
    )
    assert Estimate(4.0, 2.0, 5.0).inverse() == Estimate(0.25, 0.2, 0.5)
    assert (Estimate(0.0).inverse(), NOTHING.times(product)) == (NOTHING, NOTHING)


def test_the_p_value_is_below_five_per_cent_where_the_interval_leaves_zero_out():
    for change in (0.1, 0.5, 1.0, 2.0, 4.0):
        contrast = Contrast(change, error=0.4, freedom=5, pairs=3)
        assert (contrast.p_value < 0.05) == (contrast.estimate.low > 0)


def test_corrected_p_values_are_those_of_holm():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx(
        {"a": 0.03, "b": 0.06, "c": 0.06}
    )
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
def test_only_what_is_known_to_lie_between_0_and_1_and_does_is_taken_as_a_share(
    bounded, values, scale
):
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
    assert quality_decimals(scale, values) == digits


@given(st.floats(0, 1), st.floats(0, 100), st.floats(1e-6, 1e6), st.floats(0, 50))
def test_ends_stay_within_what_a_scale_holds(share, reach, positive, factor):
    low, high = ARCSINE.ends(share, reach)
    assert 0 <= low <= share <= high <= 1
    low, high = LOGARITHM.ends(positive, factor)
    assert 0 < low <= positive <= high
    assert all(
        scale.ends(0.9, 0.0) == (0.9, 0.9) for scale in (LINEAR, LOGARITHM, ARCSINE)
    )


def test_the_geometric_mean_of_equal_values_is_that_value():
    assert geometric_mean([140.0, 140.0, 140.0]) == 140.0
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def table(values):
    """Return rows; each maps block to value."""
    return [dict(enumerate(row)) for row in np.asarray(values, float).tolist()]


def residual_mean_square(values):
    """Return the residual mean square of row + block for a complete table [rows, blocks]."""
    values = np.asarray(values, float)
    left = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    rows, blocks = values.shape
    return float((left**2).sum()) / ((rows - 1) * (blocks - 1))


@given(rows=st.integers(2, 6), blocks=st.integers(2, 5), seed=st.integers(0, 999))
def test_the_common_variance_is_the_residual_mean_square_unless_a_row_is_wild(
    rows, blocks, seed
):
    generator = np.random.default_rng(seed)
    values = generator.normal(size=(rows, blocks)) + 5 * generator.normal(
        size=(1, blocks)
    )
    with patch.object(analysis_blocks, "WIDEST", np.inf):
        found = design_of(table(values))
    assert found.residual.value == pytest.approx(residual_mean_square(values), rel=1e-6)
    assert found.residual.freedom == pytest.approx((rows - 1) * (blocks - 1))
    assert design_of(table(values)).residual.value <= found.residual.value * (1 + 1e-9)


def test_a_pair_alone_is_compared_by_the_paired_t_test():
    ours, theirs = [9.8, 10.1, 10.4, 9.9], [9.1, 9.9, 9.6, 9.7]
    rows = table([ours, theirs])
    expected = stats.ttest_rel(ours, theirs)
    found = contrast(rows[0], rows[1], *[design_of(rows)] * 2)
    assert found.p_value == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert (found.estimate.low, found.estimate.high) == pytest.approx(
        (interval.low, interval.high)
    )


def test_rows_without_common_blocks_are_compared_by_welchs_test():
    ours, theirs = [9.8, 10.1, 10.4, 9.9], [9.1, 9.9, 7.6]
    found = contrast(
        dict(zip("abcd", ours, strict=True)), dict(zip("efg", theirs, strict=True))
    )
    expected = stats.ttest_ind(ours, theirs, equal_var=False)
    assert found.pairs == 0
    assert found.p_value == pytest.approx(expected.pvalue)


def test_what_blocks_share_cancels():
    generator = np.random.default_rng(5)
    quiet = generator.normal(0, 0.01, (4, 3))
    shared = quiet + generator.normal(0, 10, (1, 3))
    of = [
        contrast(rows[1], rows[0], *[design_of(rows)] * 2)
        for rows in (table(quiet), table(shared))
    ]
    assert of[1].change == pytest.approx(of[0].change)
    assert of[1].error == pytest.approx(of[0].error)


def test_other_rows_narrow_the_interval_of_a_pair():
    generator = np.random.default_rng(1)
    rows = table(generator.normal(size=(8, 2)))
    alone, among = (
        contrast(rows[1], rows[0]),
        contrast(rows[1], rows[0], *[design_of(rows)] * 2),
    )
    assert (alone.freedom, among.freedom) == (1, 1 + PRIOR)
    assert among.estimate.half_width < alone.estimate.half_width


def test_variances_are_moderated_by_smyths_formula():
    values = [
        [9.8, 10.1, 10.4, 9.9],
        [9.1, 9.9, 9.6, 9.7],
        [9.0, 9.6, 9.9, 9.2],
        [8.2, 9.0, 9.1, 8.8],
    ]
    rows = table(values)
    design = design_of(rows)
    own = np.var(np.subtract(values[1], values[0]), ddof=1) / 2
    moderated = (PRIOR * residual_mean_square(values) + 3 * own) / (PRIOR + 3)
    found = contrast(rows[1], rows[0], design, design)
    assert found.error == pytest.approx(np.sqrt(2 * moderated / 4))
    assert found.freedom == PRIOR + 3


def test_one_low_seed_elsewhere_does_not_widen_the_interval_of_equal_rows():
    low = [[0.95, 0.95, 0.95]] * 3 + [[0.95, 0.95, 0.70]]
    rows = table(low)
    design = design_of(rows)
    assert contrast(rows[1], rows[0], design, design).error == 0
    assert contrast(rows[3], rows[0], design, design).estimate.half_width > 0.1


def test_a_wild_seed_of_one_row_spoils_no_verdict_between_two_others():
    """Of three rows, two of the three pairs hold the wild one, so the limit is the median over rows."""
    rows = table([[0.950, 0.951, 0.949], [0.950, 0.949, 0.951], [0.951, 0.950, 0.70]])
    design = design_of(rows)
    quiet = design_of(rows[:2])
    found = contrast(rows[1], rows[0], design, design).estimate
    assert (
        found.half_width
        < 2 * contrast(rows[1], rows[0], quiet, quiet).estimate.half_width
    )
    assert contrast(rows[2], rows[0], design, design).estimate.half_width > 0.1


def test_a_wild_row_widens_the_intervals_of_others_little():
    generator = np.random.default_rng(2)
    quiet = generator.normal(size=(6, 4))
    wild = design_of(table(np.vstack([quiet, 1000 * generator.normal(size=(1, 4))])))
    assert wild.residual.value < 5 * design_of(table(quiet)).residual.value


def test_one_run_has_the_common_variance_of_the_other_rows():
    rows = table([[1, 2, 3.1], [2, 3, 5], [2, 4, 4.5]])
    design = design_of(rows)
    assert run_variance([1.0], design).value == design.within.value
    assert run_variance([1.0], None) is None
    single = contrast({0: 1.0}, rows[0], design, design)
    assert (single.pairs, single.freedom) == (1, SINGLE)
    assert single.error == pytest.approx(np.sqrt(2 * design.residual.value))
    assert contrast({9: 1.0}, rows[0], design, design).pairs == 0
    assert contrast({0: 1.0}, rows[0]).error is None


def test_equal_runs_have_a_spread_of_exactly_zero():
    found = design_of(table(np.ones((4, 2)) * [[1.0], [2.0], [3.0], [0.1 + 0.2]]))
    assert found.within.value == found.residual.value == 0


def test_rows_that_share_no_blocks_have_no_residual():
    assert design_of([{0: 1.0, 1: 2.0}, {2: 1.5, 3: 2.0}]).residual is None
    assert design_of([{0: 1.0}, {0: 2.0}]) is None


def test_the_spread_of_many_rows_is_that_of_a_sample_of_their_pairs(monkeypatch):
    generator = np.random.default_rng(0)
    values = table(generator.normal(size=(300, 3)) + generator.normal(size=(1, 3)))
    every = design_of(values)
    monkeypatch.setattr("scalestudy.analysis.variances.MOST_PAIRED", 200)
    sampled = design_of(values)
    assert sampled.within.value == every.within.value
    assert sampled.residual.value == pytest.approx(every.residual.value, rel=0.02)
    assert sampled.residual.freedom == pytest.approx(every.residual.freedom)
