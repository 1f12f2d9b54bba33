import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.analysis.pooling import pool


def table(values):
    return {row: dict(enumerate(numbers)) for row, numbers in enumerate(np.asarray(values, float).tolist())}


def drawn(rows=5, seeds=3, spreads=1.0, seed=3):
    spreads = np.broadcast_to(spreads, rows)[:, None]
    return spreads * np.random.default_rng(seed).normal(size=(rows, seeds))


def test_rows_alike_share_the_variance_of_a_one_way_analysis():
    values = drawn()
    found = pool(table(values), by_seed=False)
    assert len(found.rows) == 5
    assert found.spread.variance == pytest.approx(values.var(axis=1, ddof=1).mean())
    assert (found.spread.freedom, found.spread.rows) == (10, 5)
    assert found.residual == found.spread


def test_by_seed_what_is_left_is_that_of_a_randomised_block_design():
    values = drawn() + 5 * np.random.default_rng(9).normal(size=(1, 3))
    left = values - values.mean(1, keepdims=True) - values.mean(0) + values.mean()
    found = pool(table(values), by_seed=True)
    assert found.residual.variance == pytest.approx((left**2).sum() / 8)
    assert found.residual.freedom == 8
    # About the row's mean the variance is the same as without seeds, but less is known of it.
    assert found.spread.variance == pytest.approx(values.var(axis=1, ddof=1).mean())
    assert 2 < found.spread.freedom < 3


def test_where_seeds_share_nothing_the_mean_keeps_nearly_all_degrees_of_freedom():
    assert 7 < pool(table(drawn()), by_seed=True).spread.freedom <= 10


def test_a_missing_run_leaves_the_fit_right():
    rows = table(drawn() + np.array([[0.0, 7.0, -3.0]]))
    del rows[1][2]
    design, numbers = [], []
    for row, values in rows.items():
        for seed, value in values.items():
            design.append([float(row == r) for r in range(5)] + [float(seed == s) for s in (1, 2)])
            numbers.append(value)
    squares = np.linalg.lstsq(np.array(design), np.array(numbers), rcond=None)[1][0]
    found = pool(rows, by_seed=True).residual
    assert found.freedom == 14 - 7
    assert found.variance == pytest.approx(squares / 7)


def test_a_row_of_one_run_tells_nothing_of_spread():
    rows = table(drawn())
    rows["alone"] = {0: 50.0}
    assert pool(rows, by_seed=False) == pool(table(drawn()), by_seed=False)


def test_fewer_than_three_rows_are_not_pooled():
    assert pool(table(drawn(rows=2)), by_seed=False).rows == ()


@pytest.mark.parametrize("by_seed", [False, True])
def test_a_wild_row_stands_apart_and_does_not_count_for_the_others(by_seed):
    found = pool(table(drawn(6, spreads=[1, 1, 1, 1, 1, 1000])), by_seed)
    assert found.apart == (5,)
    assert found.rows == (0, 1, 2, 3, 4)
    assert found.spread.variance < 10
    assert found.spread.rows == 5


def test_two_wild_rows_do_not_hide_each_other():
    found = pool(table(drawn(6, spreads=[1, 1, 1, 1, 1000, 1000])), by_seed=False)
    assert found.apart == (4, 5)
    assert found.spread.variance < 10


def test_where_half_of_the_rows_are_wild_nothing_is_pooled():
    spreads = [1, 1, 1, 1000, 1000, 1000]
    assert pool(table(drawn(6, spreads=spreads)), by_seed=False).rows == ()


def test_rows_without_any_spread_share_none():
    found = pool(table(np.ones((4, 2)) * [[1.0], [2.0], [3.0], [0.1 + 0.2]]), by_seed=True)
    assert found.rows == (0, 1, 2, 3)
    assert found.spread.variance == found.residual.variance == 0


def test_rows_whose_runs_are_equal_do_not_make_another_look_wild():
    found = pool(table([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [0.98, 1.0]]), by_seed=False)
    assert found.apart == ()
    assert found.spread.variance == pytest.approx(0.0002 / 4)


def test_rows_without_a_common_seed_are_not_pooled_by_seed():
    rows = {row: {2 * row: 1.0 + row, 2 * row + 1: 2.0} for row in range(4)}
    assert pool(rows, by_seed=True).rows == ()


@given(st.integers(0, 10_000), st.integers(3, 8), st.integers(2, 4), st.booleans())
def test_where_rows_lie_does_not_matter(seed, rows, seeds, by_seed):
    values = drawn(rows, seeds, seed=seed)
    found = pool(table(values), by_seed)
    moved = pool(table(values + 10.0 * np.arange(rows)[:, None]), by_seed)
    assert found.rows == moved.rows
    if found.spread is not None:
        assert found.spread.variance == pytest.approx(moved.spread.variance)
        assert found.spread.freedom <= len(found.rows) * (seeds - 1) + 1e-9
