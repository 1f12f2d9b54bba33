"""Batches are read once, in order, in advance, and into memory that is used again."""

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalestudy.data.loader import (
    ALIGNMENT,
    Buffers,
    Loader,
    Prefetch,
    Stored,
    copy_rows,
)
from scalestudy.data.samples import Call, epoch_order


def loader(
    samples: int, *, slices, workers: int, batch: int, steps: int = 1, **more: Any
) -> Loader:
    inputs = np.arange(samples, dtype=np.uint16)[:, None, None, None]
    return Loader(
        Stored(inputs, inputs[:, 0, 0, 0]),
        slices=slices,
        workers=workers,
        global_batch=batch,
        steps_per_call=steps,
        **more,
    )


def threads() -> list[str]:
    return [
        thread.name
        for thread in threading.enumerate()
        if thread.name.startswith("loader")
    ]


def rows(call: Call, step: int) -> list[int]:
    return [
        int(v) for part in call if part.count for v in part.targets[step, : part.count]
    ]


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 17), st.integers(1, 9), st.integers(1, 5))
def test_the_workers_of_a_run_read_every_sample_of_an_epoch_once_in_its_order(
    samples, batch, workers, steps
):
    order = epoch_order(np.arange(samples), 0, 0)
    epochs = [
        list(
            loader(
                samples,
                slices=[(rank, rank + 1)],
                workers=workers,
                batch=batch,
                steps=steps,
            ).epoch(order)
        )
        for rank in range(workers)
    ]
    read = []
    for calls in zip(*epochs, strict=True):
        for step in range(calls[0][0].steps):
            read += [row for call in calls for row in rows(call, step)]
    assert read == list(order)


def test_an_empty_slice_is_the_first_row_of_the_batch_that_counts_for_nothing():
    whole = next(loader(2, slices=[(0, 1)], workers=1, batch=2).epoch(np.array([1, 0])))
    call = next(loader(2, slices=[(0, 1)], workers=3, batch=2).epoch(np.array([1, 0])))
    assert call[0].count == 0
    assert np.array_equal(call[0].inputs, whole[0].inputs[:, :1])


def test_a_worker_never_reads_anothers_rows():
    touched = []

    class Watched(np.ndarray):
        def take(self, indices, *given, **more):
            touched.extend(indices)
            return np.asarray(self).take(indices, *given, **more)

        def __getitem__(self, index):
            raise AssertionError("rows are taken, not indexed")

    inputs = np.zeros((12, 1, 1, 1), np.uint8).view(Watched)
    own = Loader(
        Stored(inputs, np.zeros(12)), slices=[(1, 2)], workers=3, global_batch=6
    )
    list(own.epoch(np.arange(12)))
    assert sorted(set(touched)) == [2, 3, 8, 9]


@pytest.mark.parametrize("first", [0, 1, 2, 5])
def test_an_epoch_may_begin_at_any_step(first):
    order = epoch_order(np.arange(20), 0, 0)
    whole = loader(20, slices=[(0, 1)], workers=1, batch=3).epoch(order)
    late = loader(20, slices=[(0, 1)], workers=1, batch=3, steps=2).epoch(order, first)
    expected = [row for call in whole for row in rows(call, 0)][3 * first :]
    assert [
        row
        for call in late
        for step in range(call[0].steps)
        for row in rows(call, step)
    ] == expected


@pytest.mark.parametrize("wrong", [99, -1])
def test_an_error_while_reading_reaches_the_loop(wrong):
    broken = loader(10, slices=[(0, 1)], workers=1, batch=4)
    with pytest.raises(IndexError, match=f"{wrong}"):
        list(broken.epoch(np.array([0, 1, 2, wrong])))


def test_an_error_of_one_device_ends_the_threads_of_all():
    def stage(part, device):
        if device == 1 and part.step == 2:
            raise MemoryError("the device is full")
        return part

    broken = loader(
        40, slices=[(0, 1), (1, 2), (2, 3)], workers=3, batch=6, stage=stage
    )
    epoch = broken.epoch(np.arange(40))
    assert [next(epoch)[0].step for _ in range(2)] == [0, 1]
    with pytest.raises(MemoryError):
        next(epoch)
    assert not threads()


def test_each_device_has_a_thread_of_its_own_which_stages_its_slices():
    seen = set()

    def stage(part, device):
        seen.add((device, threading.current_thread().name))
        return part._replace(inputs=("staged", device))

    calls = list(
        loader(9, slices=[(0, 1), (1, 2)], workers=2, batch=4, stage=stage).epoch(
            np.arange(9)
        )
    )
    assert seen == {(0, "loader 0"), (1, "loader 1")}
    assert {part.inputs for call in calls for part in call} == {
        ("staged", 0),
        ("staged", 1),
    }


@given(
    st.integers(1, 40),
    st.integers(1, 9),
    st.integers(1, 3),
    st.lists(st.integers(0, 6), max_size=40),
)
def test_a_batch_stays_whole_as_long_as_somebody_holds_it(
    samples, batch, devices, holds
):
    """Hold each call for a drawn number of calls while the threads read on; none of its rows may change."""
    own = loader(
        samples,
        slices=[(d, d + 1) for d in range(devices)],
        workers=devices,
        batch=batch,
    )
    held: list[tuple[int, list[int], list]] = []
    for epoch in range(2):
        order = epoch_order(np.arange(samples), 0, epoch)
        for number, call in enumerate(own.epoch(order)):
            expected = list(order[number * batch : (number + 1) * batch])
            views = [
                part.inputs[0, : part.count] for part in call
            ]  # a view outlives the call
            held.append((number + ([*holds, *[0] * samples][number]), expected, views))
            for _, expected, views in held:
                assert [int(row) for view in views for row in view.ravel()] == expected
            held = [each for each in held if each[0] > number]


def test_memory_is_used_again_within_and_across_epochs():
    own = loader(100, slices=[(0, 1)], workers=1, batch=5)
    places = set()
    for _ in range(3):
        for call in own.epoch(np.arange(100)):
            places.add(call[0].inputs.ctypes.data)
            assert (
                call[0].inputs.ctypes.data % 64 == call[0].targets.ctypes.data % 64 == 0
            )
    assert len(places) <= 4  # one being computed, one handed over, two read ahead


def test_loaders_that_take_turns_share_their_memory():
    buffers = [Buffers()]
    one, other = (
        loader(40, slices=[(0, 1)], workers=1, batch=5, buffers=buffers)
        for _ in range(2)
    )
    for own in (one, other) * 3:
        assert len([None for _ in own.epoch(np.arange(40))]) == 8
    assert buffers[0].made <= 4


class Drawn:
    """Named columns: the inputs grow with the longest row of a call, the targets hold row and epoch."""

    def forms(self, rows):
        return {"text": ((int(rows.max()),), np.dtype(np.int32))}, {
            "row": ((), np.dtype(np.int64)),
            "epoch": ((), np.dtype(np.int64)),
        }

    def read(self, rows, epoch, inputs, targets):
        inputs["text"][:] = rows[:, None]
        targets["row"][:], targets["epoch"][:] = rows, -1 if epoch is None else epoch


def test_columns_have_names_and_one_form_for_all_workers_of_a_call():
    parts = [
        list(
            Loader(Drawn(), slices=[(rank, rank + 1)], workers=2, global_batch=4).epoch(
                np.array([1, 2, 3, 9, 2, 1]), epoch=7
            )
        )
        for rank in range(2)
    ]
    for rank, ((first,), (last,)) in enumerate(parts):
        assert [first.inputs["text"].shape, last.inputs["text"].shape] == [
            (1, 2, 9),
            (1, 1, 2),
        ]
        assert first.targets["row"].tolist() == [[[1, 2]], [[3, 9]]][rank]
        assert (last.targets["row"].tolist(), last.targets["epoch"].tolist()) == (
            [[[2], [1]][rank]],
            [[7]],
        )


def test_rows_are_read_in_the_order_asked_for():
    source = Stored(
        np.arange(12).reshape(6, 2), {"a": np.arange(6), "b": np.arange(6.0)}
    )
    forms = source.forms(np.array([0]))
    assert forms == (
        ((2,), np.dtype(np.int64)),
        {"a": ((), np.dtype(np.int64)), "b": ((), np.dtype(np.float64))},
    )
    inputs, targets = (
        np.empty((2, 2), np.int64),
        {"a": np.empty(2, np.int64), "b": np.empty(2)},
    )
    source.read(np.array([5, 1]), None, inputs, targets)
    assert inputs.tolist() == [[10, 11], [2, 3]]
    assert (targets["a"].tolist(), targets["b"].tolist()) == ([5, 1], [5.0, 1.0])


@pytest.mark.parametrize("row", [-1, 3])
def test_a_row_that_is_not_there_is_an_error(row):
    with pytest.raises(IndexError):
        copy_rows(np.arange(3), np.array([row]), np.empty(1, np.int64))


def test_it_makes_so_many_ahead_and_no_more():
    made, at_least = [], threading.Semaphore(0)

    def items():
        for number in range(10):
            made.append(number)
            at_least.release()
            yield number

    def wait_for(count):
        for _ in range(count):
            assert at_least.acquire(timeout=600)

    ahead = Prefetch(items(), 2, "test")
    ahead.start()
    wait_for(2)
    for number in range(8):
        assert ahead.take() == number
        wait_for(1)
        assert made == list(
            range(number + 3)
        )  # exactly this many: there is no buffer for the next
    ahead.close()
    assert made == list(range(10))


@pytest.mark.parametrize(
    ("count", "most", "taken"), [(100, 3, 100), (3, 1, 0), (3, 1, 1), (3, 1, 3)]
)
def test_all_come_in_order_and_closing_ends_the_thread_wherever_it_waits(
    count, most, taken
):
    ahead = Prefetch(iter(range(count)), most, "to be closed")
    ahead.start()
    assert [ahead.take() for _ in range(taken)] == list(range(taken))
    if taken == count:
        with pytest.raises(StopIteration):
            ahead.take()
    ahead.close()
    assert "to be closed" not in {thread.name for thread in threading.enumerate()}


def taken(buffers, size=1000):
    (array,) = buffers.take(((size,), np.uint8))
    return array


@given(
    st.lists(
        st.tuples(st.integers(1, 70), st.sampled_from(["uint8", "uint16", "float32"])),
        min_size=1,
    )
)
def test_arrays_of_a_block_are_aligned_and_apart(forms):
    arrays = Buffers().take(*[((count, 3), dtype) for count, dtype in forms])
    for number, ((count, dtype), array) in enumerate(zip(forms, arrays, strict=True)):
        assert (array.shape, array.dtype) == ((count, 3), np.dtype(dtype))
        assert array.ctypes.data % ALIGNMENT == 0
        array.fill(number)
    assert all((array == number).all() for number, array in enumerate(arrays))


def test_a_block_is_used_again_once_nothing_refers_to_it():
    buffers = Buffers()
    array = taken(buffers)
    first = array.ctypes.data
    del array
    assert [taken(buffers).ctypes.data for _ in range(5)] == [first] * 5
    assert buffers.made == 1


@pytest.mark.parametrize(
    "part",
    [
        lambda array: array,
        lambda array: array[3:],
        lambda array: array[2:900].reshape(2, 449)[1][5:].view(np.int8),
        lambda array: memoryview(array)[3:],
        lambda array: np.from_dlpack(array)[7:],
        lambda array: iter(array.reshape(10, 100)),
    ],
)
def test_whatever_refers_to_a_part_of_a_block_keeps_it_from_being_used_again(part):
    buffers = Buffers()
    array = taken(buffers)
    first, kept = array.ctypes.data, part(array)
    del array
    assert taken(buffers).ctypes.data != first
    del kept
    assert first in {each.ctypes.data for each in [taken(buffers) for _ in range(2)]}


def test_a_smaller_batch_uses_the_block_of_a_larger_one_and_never_the_other_way():
    buffers = Buffers()
    place = taken(buffers, 1000).ctypes.data
    assert taken(buffers, 10).ctypes.data == place
    assert taken(buffers, 1000).ctypes.data == place
    assert buffers.made == 1
    larger = taken(buffers, 5000)
    larger.fill(1)
    assert buffers.made == 2
