import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.analysis.chances import holm, paired, unpaired
from scalestudy.analysis.statistics import Spread, difference, own_spread, paired_difference

VALUES = st.lists(st.floats(-100, 100), min_size=2, max_size=6)


@given(VALUES, VALUES)
def test_a_chance_is_below_five_per_cent_just_where_the_interval_leaves_zero_out(first, second):
    spreads = own_spread(first), own_spread(second)
    if spreads[0].variance + spreads[1].variance < 1e-6:
        return
    found = difference(first, second)
    if min(abs(found.low), abs(found.high)) > 1e-6:
        assert (unpaired(first, second, spreads) < 0.05) == (found.low > 0 or found.high < 0)


@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=2, max_size=6))
def test_pairs_likewise(pairs):
    first, second = zip(*pairs, strict=True)
    changes = [a - b for a, b in pairs]
    spread = Spread(own_spread(changes).variance / 2, len(changes) - 1)
    if spread.variance < 1e-6:
        return
    found = paired_difference(first, second)
    if min(abs(found.low), abs(found.high)) > 1e-6:
        assert (paired(changes, spread) < 0.05) == (found.low > 0 or found.high < 0)


def test_runs_that_do_not_differ_at_all_are_certain_either_way():
    none = Spread(0.0, 2)
    assert unpaired([1.0, 1.0], [1.0, 1.0], (none, none)) == 1
    assert unpaired([1.0, 1.0], [2.0, 2.0], (none, none)) == 0


def test_holm_multiplies_the_least_by_all_and_the_last_by_one_and_keeps_the_order():
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})


def test_corrected_chances_seldom_call_anything_real_where_nothing_is():
    noise = random.Random(3)
    wrong = 0
    for _ in range(200):
        chances = {}
        for row in range(10):
            first, second = ([noise.gauss(0, 1) for _ in range(4)] for _ in range(2))
            chances[row] = unpaired(first, second, (own_spread(first), own_spread(second)))
        wrong += min(holm(chances).values()) < 0.05
    assert wrong <= 20  # 5 % of 200, and three standard errors
