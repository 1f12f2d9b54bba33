"""Two units of which not one group with both works are found by halves."""

from itertools import combinations
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.features.check.collectives import culprits


class Fabric:
    """Units, pairs that cannot talk, and units that do not work on their own."""

    def __init__(self, pairs=(), units=(), together=None):
        self.pairs, self.units, self.together = {frozenset(pair) for pair in pairs}, set(units), together
        self.trials = 0

    def works(self, groups):
        self.trials += 1
        flat = [unit for group in groups for unit in group]
        assert len(flat) == len(set(flat)), "groups that run at once share a unit"
        return [self._one(group) for group in groups]

    def _one(self, group):
        bad = any(frozenset(pair) in self.pairs for pair in combinations(group, 2))
        return not bad and not self.units & set(group) and len(group) != self.together


@given(st.integers(2, 64), st.data())
def test_the_one_bad_pair_is_named_in_few_trials(count, data):
    pair = data.draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True))
    fabric = Fabric(pairs=[pair])
    assert set(culprits(range(count), fabric.works)) == set(pair)
    assert fabric.trials <= 2 + 4 * ceil(log2(count))


@given(st.integers(2, 64), st.data())
def test_of_several_bad_pairs_one_is_named(count, data):
    number = st.integers(0, count - 1)
    pairs = data.draw(st.lists(st.lists(number, min_size=2, max_size=2, unique=True), min_size=1, max_size=9))
    fabric = Fabric(pairs=pairs)
    assert frozenset(culprits(range(count), fabric.works)) in fabric.pairs


@given(st.integers(1, 64), st.data())
def test_a_unit_that_does_not_work_on_its_own_is_named_alone(count, data):
    bad = data.draw(st.integers(0, count - 1))
    assert culprits(range(count), Fabric(units=[bad]).works) == (bad,)


@pytest.mark.parametrize("count", [3, 4, 8])
def test_nobody_is_accused_when_every_smaller_group_works(count):
    assert culprits(range(count), Fabric(together=count).works) is None
