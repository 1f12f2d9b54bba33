"""The buckets in which gradients are exchanged: last layers first, determined by sizes alone."""

from hypothesis import given
from hypothesis import strategies as st

from scalestudy.engines.group import in_buckets, in_halves, summed

SIZES = st.lists(st.integers(0, 100), max_size=20)


def test_last_gradients_go_first_and_keep_their_order_within_a_bucket():
    assert in_buckets([1, 2, 3, 4, 5], 7) == ((3, 4), (0, 1, 2))
    assert in_buckets([1, 2, 3, 4, 5], 5) == ((4,), (2, 3), (0, 1))


def test_a_gradient_larger_than_a_bucket_is_not_divided():
    assert in_buckets([1, 50, 1], 10) == ((1, 2), (0,))


def test_without_a_limit_or_below_it_there_is_one_bucket_in_the_models_order():
    assert in_buckets([4, 4, 4], None) == in_buckets([4, 4, 4], 100) == ((0, 1, 2),)


def test_a_model_without_weights_has_no_bucket():
    assert in_buckets([], 10) == () == in_buckets([], None)


@given(SIZES, st.integers(1, 200))
def test_each_gradient_is_in_one_bucket_and_all_buckets_but_the_last_are_full(sizes, limit):
    buckets = in_buckets(sizes, limit)
    assert [index for bucket in reversed(buckets) for index in bucket] == list(range(len(sizes)))
    held = [[sizes[index] for index in bucket] for bucket in buckets]
    assert all(sum(each) >= limit for each in held[:-1])
    assert all(sum(each[1:]) < limit for each in held)  # closed as soon as it was full


@given(SIZES, st.integers(1, 200))
def test_sums_come_back_in_the_order_of_the_gradients(sizes, limit):
    asked = []

    def all_reduce(part):
        asked.append(part)
        return [10 * gradient for gradient in part]

    gradients = list(range(len(sizes)))
    buckets = in_buckets(sizes, limit)
    assert summed(gradients, buckets, all_reduce) == [10 * gradient for gradient in gradients]
    assert [tuple(part) for part in asked] == list(buckets)


def test_halves_have_equal_work_and_the_last_layers_come_first():
    assert in_halves([1, 1, 1, 1]) == ((2, 3), (0, 1))
    assert in_halves([6, 1, 1]) == ((0, 1, 2),)  # the first half would hold all gradients
    assert in_halves([1, 1, 6]) == ((2,), (0, 1))
    assert in_halves([]) == ()
