"""The samples of each step, and the slices of workers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.data.samples import (
    batches,
    epoch_order,
    leaves,
    like,
    map_columns,
    sample_bytes,
    worker_slice,
)

ONE = ((2, 3), np.dtype(np.uint16))
TWO = ((), np.dtype(np.float64))


def test_one_array_and_several_by_name_are_treated_alike():
    assert map_columns(lambda a, b: a + b, 1, 2) == 3
    assert map_columns(lambda a, b: a + b, {"x": 1, "y": 2}, {"y": 20, "x": 10}) == {
        "x": 11,
        "y": 22,
    }
    assert leaves({"x": 1, "y": 2}) == [1, 2]
    assert leaves(7) == [7]
    assert like({"x": 0, "y": 0}, [1, 2]) == {"x": 1, "y": 2}
    assert like(0, [5]) == 5


def test_names_that_do_not_agree_are_an_error():
    with pytest.raises(KeyError):
        map_columns(lambda a, b: a + b, {"x": 1}, {"y": 2})


def test_a_sample_is_as_large_as_its_arrays():
    assert sample_bytes(ONE) == 12
    assert sample_bytes({"a": ONE, "b": TWO}) == 20


@given(st.integers(1, 500), st.integers(0, 2**32), st.integers(0, 100))
def test_an_epoch_is_a_permutation_that_seed_and_epoch_decide(count, seed, epoch):
    samples = np.arange(count) * 3
    order = epoch_order(samples, seed, epoch)
    assert sorted(order) == list(samples)
    assert np.array_equal(order, epoch_order(samples, seed, epoch))


@given(st.integers(1, 1000), st.integers(1, 100))
def test_batches_cover_every_row_once_and_only_the_last_is_smaller(samples, batch):
    rows = list(batches(samples, batch))
    assert [row for start, stop in rows for row in range(start, stop)] == list(
        range(samples)
    )
    assert all(stop - start == batch for start, stop in rows[:-1])


@given(st.integers(0, 1000), st.integers(1, 64))
def test_slices_cover_a_batch_once_and_differ_by_one_at_most(batch, size):
    slices = [worker_slice(batch, rank, size) for rank in range(size)]
    assert [row for start, stop in slices for row in range(start, stop)] == list(
        range(batch)
    )
    lengths = {stop - start for start, stop in slices}
    assert max(lengths) - min(lengths) <= 1
