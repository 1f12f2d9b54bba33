"""Taking slices to the devices that compute them: by whoever reads them, ahead of need."""

import functools
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.data.columns import leaves, map_columns
from scalestudy.data.loading.buffers import ALIGNMENT
from scalestudy.data.loading.slices import Call, Slice


def stage(part: Slice, device: int) -> Slice:
    """A slice whose arrays are tensors where the process's device of that index computes.

    On CPUs these are the arrays' own memory, which is not copied. On a GPU they are copied once, before this
    returns: in the thread that reads, so that the steps before it are computed meanwhile.
    """
    place = gpu(device)
    return part._replace(
        inputs=map_columns(lambda array: tensor(array, place), part.inputs),
        targets=map_columns(lambda array: tensor(array, place), part.targets),
    )


def tensor(array: NDArray[Any], place: str | None = None) -> Any:
    """A tensor of an array: in its memory where that is aligned, or copied to the device `place`.

    The array must not change as long as the tensor is used; its memory lives on with the tensor.
    """
    if array.ctypes.data % ALIGNMENT or not (array.flags.c_contiguous and array.flags.writeable):
        with tf.device("CPU:0"):
            there = tf.convert_to_tensor(array)
    else:
        there = tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    if place is None or array.dtype == np.int32:  # TensorFlow keeps int32 in host memory, on GPUs as well
        return there
    with tf.device(place):
        return tf.identity(there)


def tensors_of(call: Call) -> list[Slice]:
    """A call's slices as tensors, staged or not; all numbers int64 but `steps`, which counts a loop."""
    staged = [
        part if tf.is_tensor(leaves(part.inputs)[0]) else stage(part, device)
        for device, part in enumerate(call)
    ]
    return [
        part._replace(
            start=number(part.start, tf.int64),
            count=number(part.count, tf.int64),
            total=number(part.total, tf.int64),
            step=number(part.step, tf.int64),
            steps=number(part.steps, tf.int32),
            first=number(part.first, tf.bool),
        )
        for part in staged
    ]


@functools.lru_cache(maxsize=256)
def number(value: int | bool, dtype: Any) -> Any:
    """A scalar in host memory. The same few come again with every call, for every device."""
    with tf.device("CPU:0"):
        return tf.constant(value, dtype)


@functools.cache
def gpu(device: int) -> str | None:
    """The GPU of that index among those of this process, for `tf.device`; None where it computes on CPUs."""
    return f"GPU:{device}" if tf.config.list_logical_devices("GPU") else None
