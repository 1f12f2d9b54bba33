"""What of the exchange is left after the backward pass."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalestudy.features.estimate.overlap import exposed, ready_shares


def test_buckets_are_ready_by_their_work_and_by_their_bytes_where_that_is_not_known():
    assert ready_shares([30, 10], [10, 30]) == [0.25, 1.0]
    assert ready_shares([30, 10], []) == [0.75, 1.0]
    assert ready_shares([], []) == []
    assert ready_shares([0, 0], [0, 0]) == [1.0, 1.0]


def test_one_bucket_hides_nothing():
    assert exposed([2.0], [1.0], 5.0) == 2.0


def test_a_bucket_waits_for_its_gradients_and_for_the_bucket_before_it():
    # ready at 1 and 4; summed from 1 to 3 and from 4 to 6: the backward pass ends at 4.
    assert exposed([2.0, 2.0], [0.25, 1.0], 4.0) == pytest.approx(2.0)
    # the first is under way until 6, so the second ends at 8.
    assert exposed([5.0, 2.0], [0.25, 1.0], 4.0) == pytest.approx(4.0)


def test_buckets_that_are_ready_together_negotiate_once():
    # Both are there when the first begins: one negotiation. The second comes later: two.
    assert exposed([2.0, 2.0], [1.0, 1.0], 4.0, overhead=1.0) == pytest.approx(5.0)
    assert exposed([2.0, 2.0], [0.0, 1.0], 4.0, overhead=1.0) == pytest.approx(3.0)
    assert exposed([2.0, 2.0], [0.25, 1.0], 4.0, hidden=0.0, overhead=1.0) == pytest.approx(5.0)


def test_where_sums_take_the_workers_cores_nothing_may_be_hidden():
    assert exposed([5.0, 2.0], [0.25, 1.0], 4.0, hidden=0.0) == pytest.approx(7.0)
    assert exposed([5.0, 2.0], [0.25, 1.0], 4.0, hidden=0.5) == pytest.approx(5.5)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1)), min_size=1, max_size=6), st.floats(0, 10))
def test_no_less_is_left_than_the_last_bucket_and_no_more_than_all(buckets, backward):
    costs = [cost for cost, _ in buckets]
    shares = [*sorted(share for _, share in buckets)[:-1], 1.0]
    left = exposed(costs, shares, backward)
    assert costs[-1] - 1e-9 <= left <= sum(costs) + 1e-9


def test_a_model_without_gradients_exchanges_nothing():
    assert exposed([], [], 1.0) == 0
