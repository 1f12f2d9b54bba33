import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from scalestudy.analysis.blocks import contrast, pooled, spread


def table(values):
    """Return rows by index; each row maps block to value."""
    return {place: dict(enumerate(row)) for place, row in enumerate(np.asarray(values, float).tolist())}


def least_squares(rows):
    """Return residual squares and degrees of freedom of row + block, from a dummy-variable matrix."""
    rows = list(rows.values())
    blocks = sorted({block for row in rows for block in row})
    observed = [(i, blocks.index(block), value) for i, row in enumerate(rows) for block, value in row.items()]
    design = np.zeros((len(observed), len(rows) + len(blocks)))
    for place, (row, block, _) in enumerate(observed):
        design[place, row] = design[place, len(rows) + block] = 1
    y = np.array([value for *_, value in observed])
    solution, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    left = y - design @ solution
    return float(left @ left), len(y) - int(rank)


@given(rows=st.integers(2, 6), blocks=st.integers(2, 5), seed=st.integers(0, 999), missing=st.integers(0, 4))
def test_the_residual_is_that_of_least_squares_with_missing_runs_too(rows, blocks, seed, missing):
    generator = np.random.default_rng(seed)
    values = table(generator.normal(size=(rows, blocks)) + 5 * generator.normal(size=(1, blocks)))
    for _ in range(missing):
        values[generator.integers(rows)].pop(int(generator.integers(blocks)), None)
    values = {key: row for key, row in values.items() if len(row) > 1}
    found = pooled(values)
    if not values:
        assert found is None
        return
    squares, freedom = least_squares({key: values[key] for key in found.rows})
    if freedom == 0:
        assert found.residual is None
        return
    assert found.residual.freedom == freedom
    assert found.residual.value * freedom == pytest.approx(squares, rel=1e-6, abs=1e-9)


def test_a_pair_alone_is_compared_by_the_paired_t_test():
    ours, theirs = [9.8, 10.1, 10.4, 9.9], [9.1, 9.9, 9.6, 9.7]
    rows = table([ours, theirs])
    expected = stats.ttest_rel(ours, theirs)
    found = contrast(rows[0], rows[1], *[pooled(rows)] * 2)
    assert found.p_value == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((interval.low, interval.high))


def test_rows_without_common_blocks_are_compared_by_welchs_test():
    ours, theirs = [9.8, 10.1, 10.4, 9.9], [9.1, 9.9, 7.6]
    found = contrast(dict(zip("abcd", ours, strict=True)), dict(zip("efg", theirs, strict=True)))
    expected = stats.ttest_ind(ours, theirs, equal_var=False)
    assert found.pairs == 0
    assert found.p_value == pytest.approx(expected.pvalue)


def test_what_blocks_share_cancels():
    generator = np.random.default_rng(5)
    quiet = generator.normal(0, 0.01, (4, 3))
    shared = quiet + generator.normal(0, 10, (1, 3))
    of = [contrast(rows[1], rows[0], *[pooled(rows)] * 2) for rows in (table(quiet), table(shared))]
    assert of[1].change == pytest.approx(of[0].change)
    assert of[1].error == pytest.approx(of[0].error)


def test_the_residual_of_all_rows_narrows_the_interval_of_a_pair():
    generator = np.random.default_rng(1)
    rows = table(generator.normal(size=(8, 2)))
    alone, among = contrast(rows[1], rows[0]), contrast(rows[1], rows[0], *[pooled(rows)] * 2)
    assert (alone.freedom, among.freedom) == (1, 7)
    assert among.estimate.half_width < alone.estimate.half_width


def test_a_pair_that_differs_more_than_the_others_keeps_its_own_variance():
    rows = table([[0, 0.1, 0], [0, 0, 0.1], [0.1, 0, 0], [0, 0.4, -0.4]])
    design = pooled(rows)
    assert design.rows == {0, 1, 2, 3}
    own = contrast(rows[3], rows[0])
    assert contrast(rows[3], rows[0], design, design).error == pytest.approx(own.error)


def test_a_wild_row_leaves_the_design_to_the_others():
    generator = np.random.default_rng(2)
    quiet = generator.normal(size=(6, 4))
    design = pooled(table(np.vstack([quiet, 1000 * generator.normal(size=(1, 4))])))
    assert design.rows == set(range(6))
    assert design == pooled(table(quiet))


def test_a_row_outside_of_the_design_is_compared_by_its_own_pairs_from_either_side():
    generator = np.random.default_rng(2)
    rows = table(np.vstack([generator.normal(size=(6, 4)), 1000 * generator.normal(size=(1, 4))]))
    design = pooled(rows)
    there, back = contrast(rows[0], rows[6], design, None), contrast(rows[6], rows[0], None, design)
    assert there.freedom == back.freedom == 3
    assert there.error == pytest.approx(back.error) == pytest.approx(contrast(rows[0], rows[6]).error)


def test_where_no_others_spread_nothing_stands_apart():
    """Three equal rows of a metric with few samples, and one row that differs by one sample."""
    assert pooled(table([[1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 0.98, 1]])).rows == {0, 1, 2, 3}


def test_one_run_gives_no_interval_among_whatever_rows():
    rows = table([[1, 2, 3], [2, 3, 5]])
    assert spread([1.0], pooled(rows)) is None
    assert contrast({0: 1.0}, rows[0], *[pooled(rows)] * 2).error is None


def test_equal_runs_have_a_spread_of_exactly_zero():
    found = pooled(table(np.ones((4, 2)) * [[1.0], [2.0], [3.0], [0.1 + 0.2]]))
    assert found.within.value == found.residual.value == 0
