"""The samples of each step, and the slices of workers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scalestudy.data.loading.slices import batches, epoch_order, worker_slice


@given(st.integers(1, 500), st.integers(0, 2**32), st.integers(0, 100))
def test_an_epoch_is_a_permutation_that_seed_and_epoch_decide(count, seed, epoch):
    samples = np.arange(count) * 3
    order = epoch_order(samples, seed, epoch)
    assert sorted(order) == list(samples)
    assert np.array_equal(order, epoch_order(samples, seed, epoch))


@given(st.integers(1, 1000), st.integers(1, 100))
def test_batches_cover_every_row_once_and_only_the_last_is_smaller(samples, batch):
    rows = list(batches(samples, batch))
    assert [row for start, stop in rows for row in range(start, stop)] == list(range(samples))
    assert all(stop - start == batch for start, stop in rows[:-1])


@given(st.integers(0, 1000), st.integers(1, 64))
def test_slices_cover_a_batch_once_and_differ_by_one_at_most(batch, size):
    slices = [worker_slice(batch, rank, size) for rank in range(size)]
    assert [row for start, stop in slices for row in range(start, stop)] == list(range(batch))
    lengths = {stop - start for start, stop in slices}
    assert max(lengths) - min(lengths) <= 1
