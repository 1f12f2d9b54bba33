"""A slice's memory on its way from the loader to the step, and the layout of a step on a GPU."""

import threading

import numpy as np
import pytest

from scalestudy.data.loader import ALIGNMENT, Buffers, Loader, Stored
from scalestudy.data.samples import Slice
from scalestudy.engines.tensorflow import staging
from scalestudy.engines.tensorflow.staging import Compiled
from scalestudy.engines.tensorflow.trainer import slice_of_step

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("framework")]


def test_a_step_is_numbered_and_cut_out_on_the_device_of_its_rows(framework):
    """Otherwise this would be the first GPU, and all others would fetch the step number from it."""
    tf, placed = framework, {}

    @tf.function
    def cut(inputs, targets, first, index):
        part = slice_of_step(
            Slice(inputs, targets, 0, 2, 2, step=first), index, "CPU:1"
        )
        placed.update(
            {
                name: getattr(part, name).device[-5:]
                for name in ("inputs", "targets", "step")
            }
        )
        return part.inputs, part.targets, part.step

    inputs = tf.constant(np.arange(6, dtype=np.uint8).reshape(3, 2))
    targets = tf.constant(np.arange(6, dtype=np.int32).reshape(3, 2))
    row, labels, step = cut(inputs, targets, tf.constant(40, tf.int64), tf.constant(2))
    assert placed == dict.fromkeys(("inputs", "targets", "step"), "CPU:1")
    assert (row.numpy().tolist(), labels.numpy().tolist(), int(step)) == (
        [4, 5],
        [4, 5],
        42,
    )


def test_on_gpus_each_size_of_a_batch_has_its_graph_and_on_cpus_one_serves_all(
    framework, monkeypatch
):
    def rows_known(gpu):
        monkeypatch.setattr(staging, "gpu", lambda device: gpu)
        known = []
        compiled = staging.Compiled(
            lambda call: known.append(call[0].inputs.shape[1]) or call[0].inputs
        )
        for rows in (4, 3, 4):
            compiled(
                [
                    Slice(
                        np.zeros((1, rows, 2), np.float32),
                        np.zeros((1, rows)),
                        0,
                        rows,
                        rows,
                    )
                ]
            )
        return known

    assert rows_known("CPU:0") == [4, 3]
    assert rows_known(None) == [None]


def address(tensor) -> int:
    return np.asarray(memoryview(tensor)).ctypes.data


def read(buffers, rows=4, fill=1) -> Slice:
    inputs, targets = buffers.take(
        ((1, rows, 8, 8, 3), np.uint8), ((1, rows), np.int32)
    )
    inputs.fill(fill)
    targets.fill(fill)
    return Slice(inputs, targets, 0, rows, rows)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.int32])
def test_on_cpus_a_tensor_is_the_memory_that_was_read_into(dtype):
    (array,) = Buffers().take(((3, 5), dtype))
    array.fill(3)
    tensor = staging.tensor(array)
    assert (address(tensor), tensor.shape) == (array.ctypes.data, (3, 5))
    assert tensor.dtype.name == np.dtype(dtype).name
    assert "CPU:0" in tensor.device


@pytest.mark.parametrize("fault", ["not aligned", "read-only", "with gaps"])
def test_what_tensorflow_could_not_take_as_it_is_is_copied(fault):
    (array,) = Buffers().take(((20, ALIGNMENT), np.uint8))
    array[:] = np.arange(20)[:, None]
    if fault == "not aligned":
        array = array.ravel()[1:641].reshape(10, 64)
    elif fault == "read-only":
        array.flags.writeable = False
    else:
        array = array[::2]
    before, tensor = array.copy(), staging.tensor(array)
    assert address(tensor) != array.ctypes.data
    assert address(tensor) % ALIGNMENT == 0
    assert np.array_equal(tensor, before)


def test_memory_is_read_into_again_only_when_the_last_tensor_over_it_has_gone(
    framework,
):
    buffers = Buffers()
    part = staging.stage(read(buffers), 0)
    place = address(part.inputs)
    row = framework.identity(part.inputs)
    del part
    assert read(buffers).inputs.ctypes.data != place
    del row
    assert place in {each.inputs.ctypes.data for each in [read(buffers), read(buffers)]}


def test_a_batch_stays_whole_while_a_step_computes_though_the_loader_reads_on(
    framework,
):
    """The step waits until everything that may be read ahead is read, then checks its batch again."""
    tf, samples = framework, 40
    read, places, sums = [], set(), []
    more = threading.Condition()

    def stage(part, device):
        staged = staging.stage(part, device)
        with more:
            read.append(part.step)
            places.add(address(staged.inputs))
            more.notify()
        return staged

    def wait(step, inputs):
        with more:
            assert more.wait_for(
                lambda: len(read) == min(step + 3, samples // 4), timeout=600
            )
        return inputs.sum(dtype=np.int64)

    def compute(call):
        part = call[0]
        before = tf.reduce_sum(tf.cast(part.inputs, tf.int64))
        with tf.control_dependencies([before]):
            between = tf.numpy_function(wait, [part.step, part.inputs], tf.int64)
        with tf.control_dependencies([between]):
            return before, between, tf.reduce_sum(tf.cast(part.inputs, tf.int64))

    inputs = np.arange(samples, dtype=np.uint16)[:, None, None, None] * np.ones(
        (1, 16, 16, 1), np.uint16
    )
    loader = Loader(
        Stored(inputs, np.arange(samples)),
        slices=[(0, 1)],
        workers=1,
        global_batch=4,
        stage=stage,
    )
    compiled = Compiled(compute)
    for call in loader.epoch(np.arange(samples)):
        sums.append([int(each) for each in compiled(call)])
    assert sums == [
        [inputs[start : start + 4].sum()] * 3 for start in range(0, samples, 4)
    ]
    assert len(places) <= 4  # the memory was reused meanwhile


@pytest.fixture
def copies(framework, monkeypatch):
    """Copy slices between logical CPUs as if they were GPUs, the first device's to the last."""
    asked: list[tuple[int, str]] = []

    def gpu(device):
        asked.append((device, threading.current_thread().name))
        return f"CPU:{1 - device}"

    monkeypatch.setattr(staging, "gpu", gpu)
    return asked


def test_each_device_has_its_own_slice_taken_there_by_its_own_thread(copies):
    inputs = np.arange(12, dtype=np.uint8)[:, None, None, None]
    loader = Loader(
        Stored(inputs, np.arange(12, dtype=np.int64)),
        slices=[(0, 1), (1, 2)],
        workers=2,
        global_batch=4,
        stage=staging.stage,
    )
    for call in loader.epoch(np.arange(12)):
        assert [part.inputs.device[-5:] for part in call] == ["CPU:1", "CPU:0"]
        assert [part.targets.device[-5:] for part in call] == ["CPU:1", "CPU:0"]
        rows = np.concatenate([part.targets[0] for part in call])
        assert rows.tolist() == list(range(4 * call[0].step, 4 * call[0].step + 4))
    assert set(copies) == {(0, "loader 0"), (1, "loader 1")}


def test_labels_of_int32_stay_in_host_memory(copies):
    part = staging.stage(read(Buffers()), 0)
    assert (part.inputs.device[-5:], part.targets.device[-5:]) == ("CPU:1", "CPU:0")
