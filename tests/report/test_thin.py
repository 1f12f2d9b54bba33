"""What is drawn of much, and labels that do not lie on each other."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.report.thin import apart, thinned

COUNTS = [1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 24, 32, 48, 64]


def test_few_are_all_kept():
    assert thinned([4, 1, 2, 2], 3) == [1, 2, 4]


def test_of_many_the_ends_are_kept_and_others_evenly_by_ratio():
    assert thinned(COUNTS, 4) == [1, 3, 8, 64] or thinned(COUNTS, 4)[::3] == [1, 64]
    kept = thinned(COUNTS, 6)
    assert len(kept) == 6
    assert max(b / a for a, b in itertools.pairwise(kept)) <= 4


def test_what_must_be_kept_is_kept():
    assert 12 in thinned(COUNTS, 4, {12, 99})


@given(
    st.lists(st.floats(0, 100), max_size=9),
    st.floats(0.5, 10),
)
def test_labels_keep_their_order_and_their_distance(places, gap):
    found = apart(places, gap, 0, 100)
    order = sorted(range(len(places)), key=lambda index: places[index])
    for below, above in itertools.pairwise(order):
        assert found[above] - found[below] >= gap - 1e-6
    if gap * (len(places) - 1) <= 100:
        assert all(-1e-6 <= each <= 100 + 1e-6 for each in found)


def test_labels_with_room_stay_where_they_are():
    assert apart([5, 50, 80], 10, 0, 100) == [5, 50, 80]


def test_labels_on_each_other_part_about_their_middle():
    assert apart([50, 50], 10, 0, 100) == pytest.approx([45, 55])
    assert apart([99, 100], 10, 0, 100) == pytest.approx([90, 100])
