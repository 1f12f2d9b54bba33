"""Functions of a call, compiled once for slices of any size, and taking slices to their devices."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.data.columns import Column, Described, leaves, map_columns
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


class Compiled:
    """Compiles a function (slices, one per device) -> tensors once, for slices of any size.

    Slices differ between workers and in the last batch of an epoch; on CPUs one graph serves them all, which
    costs no speed and halves the compilation. XLA needs sizes, and compiles for each (`fixed`); so do GPUs:
    without them TensorFlow puts a transpose before and behind every batch normalisation. `columns` are those
    of inputs and targets, where some are sequences of different length: then there is one graph. `call`
    calls it with the slices; by default here.
    """

    def __init__(
        self, function: Callable[[list[Slice]], Any], *, fixed: bool = False,
        columns: tuple[Described, Described] | None = None,
        call: Callable[[Any, list[Slice]], Any] = lambda function, slices: function(slices),
    ) -> None:  # fmt: skip
        self._function, self._fixed, self._columns, self._call = function, fixed, columns, call
        self._compiled: Any = None

    def __call__(self, call: Call) -> Any:
        """Call the compiled function with slices that are staged, or as they were read."""
        slices = tensors_of(call)
        if self._compiled is None:
            fixed = self._fixed or (self._columns is None and gpu(0) is not None)
            signature = None if fixed else [_any_size(slices, self._columns)]
            self._compiled = tf.function(self._function, input_signature=signature, autograph=False)
        return self._call(self._compiled, slices)


def _any_size(slices: list[Slice], columns: tuple[Described, Described] | None) -> list[Slice]:
    def spec(tensor: Any, column: Column | None = None) -> Any:
        lengths = tensor.shape.as_list()  # steps and rows first
        if len(lengths) > 1:
            lengths[1] = None
        if column is not None and column.sequence:
            lengths[2] = None
        return tf.TensorSpec(lengths, tensor.dtype)

    def specs(part: Slice) -> Slice:
        inputs, targets = (
            map_columns(spec, arrays, *described)
            for arrays, described in zip(part[:2], zip(columns) if columns else ((), ()), strict=True)
        )
        return Slice(inputs, targets, *(spec(number) for number in part[2:]))

    return [specs(part) for part in slices]


def scaled_inputs(inputs: Any, scale: float | None) -> Any:
    """Stored integers -> [0, 1] in Keras's float type; without a scale as `typed`."""
    if scale is None:
        return in_floatx(inputs)
    floatx = keras.config.floatx()
    return map_columns(lambda stored: tf.cast(stored, floatx) * tf.constant(scale, floatx), inputs)


def in_floatx(columns: Any) -> Any:
    """What a task reads itself: floating-point numbers in Keras's float type, all else as it is."""
    floatx = keras.config.floatx()
    return map_columns(lambda array: tf.cast(array, floatx) if array.dtype.is_floating else array, columns)
