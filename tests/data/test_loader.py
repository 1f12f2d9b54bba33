import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalestudy.data.loader import Loader
from scalestudy.data.order import epoch_order
from scalestudy.data.slices import Call


def loader(samples: int, *, slices, workers: int, batch: int, steps: int = 1) -> Loader:
    inputs = np.arange(samples, dtype=np.uint16)[:, None, None, None]
    return Loader(
        inputs, inputs[:, 0, 0, 0], slices=slices, workers=workers, global_batch=batch, steps_per_call=steps
    )


def rows(call: Call, step: int) -> list[int]:
    return [int(v) for part in call if part.count for v in part.targets[step, : part.count]]


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 17), st.integers(1, 9), st.integers(1, 5))
def test_the_workers_of_a_run_read_every_sample_of_an_epoch_once_in_its_order(samples, batch, workers, steps):
    order = epoch_order(np.arange(samples), 0, 0)
    epochs = [
        list(
            loader(samples, slices=[(rank, rank + 1)], workers=workers, batch=batch, steps=steps).epoch(order)
        )
        for rank in range(workers)
    ]
    read = []
    for calls in zip(*epochs, strict=True):
        for step in range(calls[0][0].steps):
            read += [row for call in calls for row in rows(call, step)]
    assert read == list(order)


def test_a_process_with_all_devices_reads_the_same_as_processes_of_their_own():
    order = epoch_order(np.arange(20), 0, 0)
    together = loader(20, slices=[(0, 1), (1, 2)], workers=2, batch=6).epoch(order)
    alone = [loader(20, slices=[(rank, rank + 1)], workers=2, batch=6).epoch(order) for rank in (0, 1)]
    for call, *parts in zip(together, *alone, strict=True):
        for one, (other,) in zip(call, parts, strict=True):
            assert np.array_equal(one.inputs, other.inputs)
            assert (one.start, one.count, one.total) == (other.start, other.count, other.total)


def test_an_empty_slice_is_a_row_of_zeros_that_counts_for_nothing():
    call = next(loader(2, slices=[(0, 1)], workers=3, batch=2).epoch(np.array([1, 0])))
    assert call[0].count == 0
    assert call[0].inputs.shape[1] == 1
    assert not call[0].inputs.any()


def test_a_worker_never_reads_anothers_rows():
    touched = []

    class Watched(np.ndarray):
        def __getitem__(self, index):
            touched.extend(np.ravel(index))
            return np.asarray(super().__getitem__(index))

    inputs = np.zeros((12, 1, 1, 1), np.uint8).view(Watched)
    own = Loader(inputs, np.zeros(12), slices=[(1, 2)], workers=3, global_batch=6)
    list(own.epoch(np.arange(12)))
    assert sorted(set(touched)) == [2, 3, 8, 9]


@pytest.mark.parametrize("first", range(8))
def test_an_epoch_may_begin_at_any_step(first):
    order = epoch_order(np.arange(20), 0, 0)
    whole = loader(20, slices=[(0, 1)], workers=1, batch=3).epoch(order)
    late = loader(20, slices=[(0, 1)], workers=1, batch=3, steps=2).epoch(order, first)
    expected = [row for call in whole for row in rows(call, 0)][3 * first :]
    assert [row for call in late for step in range(call[0].steps) for row in rows(call, step)] == expected


def test_a_slice_knows_its_step_of_the_run():
    epoch = loader(20, slices=[(0, 1)], workers=1, batch=3, steps=2).epoch(np.arange(20), 2, 7)
    assert [(call[0].step, call[0].steps) for call in epoch] == [(9, 2), (11, 2), (13, 1)]


def test_leaving_an_epoch_early_ends_its_thread():
    epoch = loader(100, slices=[(0, 1)], workers=1, batch=1).epoch(np.arange(100))
    next(epoch)
    epoch.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "loader"]


def test_an_error_while_reading_reaches_the_loop():
    broken = loader(10, slices=[(0, 1)], workers=1, batch=4)
    with pytest.raises(IndexError):
        list(broken.epoch(np.array([0, 1, 2, 99])))
