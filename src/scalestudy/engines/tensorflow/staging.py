"""Moving slices to their devices, and compiling functions once for slices of any size."""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from scalestudy.data.loader import ALIGNMENT
from scalestudy.data.samples import Call, Column, Described, Slice, leaves, map_columns


def stage(part: Slice, device: int) -> Slice:
    """Convert the arrays of a slice to tensors on this process's device with this index.

    On CPUs the tensors share the arrays' memory. On a GPU the arrays are copied before this returns, in the
    thread that reads, so the copy overlaps with the computation of earlier steps.
    """
    place = gpu(device)
    return part.mapped(lambda array: tensor(array, place))


def tensor(array: NDArray[Any], place: str | None = None) -> Any:
    """Convert an array to a tensor that shares its memory if that is aligned, or copy it to device `place`.

    The array must not change while the tensor is used. The tensor keeps its memory alive.
    """
    plain = array.flags.c_contiguous and array.flags.writeable
    if plain and array.ctypes.data % ALIGNMENT == 0:
        there = tf.experimental.dlpack.from_dlpack(array.__dlpack__())
    else:
        with tf.device("CPU:0"):
            there = tf.convert_to_tensor(array)
    # TensorFlow keeps int32 in host memory.
    if place is None or array.dtype == np.int32:
        return there
    # This copy is complete when it returns, so the memory of the array may be filled again.
    with tf.device(place):
        return tf.identity(there)


def tensors_of(call: Call) -> list[Slice]:
    """Return a call's slices as tensors, staged or not; numbers are int64, except `steps` (int32)."""
    slices = []
    for device, given in enumerate(call):
        part = given
        if not tf.is_tensor(leaves(given.inputs)[0]):
            part = stage(given, device)
        # Tensors, since TensorFlow would trace the function anew for each number of Python's.
        slices.append(
            part._replace(
                start=number(part.start, tf.int64),
                count=number(part.count, tf.int64),
                total=number(part.total, tf.int64),
                step=number(part.step, tf.int64),
                steps=number(part.steps, tf.int32),
                first=number(part.first, tf.bool),
            )
        )
    return slices


@functools.lru_cache(maxsize=256)
def number(value: int | bool, dtype: Any) -> Any:
    """Return a scalar in host memory. It is cached, since calls use the same few values."""
    with tf.device("CPU:0"):
        return tf.constant(value, dtype)


@functools.cache
def gpu(device: int) -> str | None:
    """Return the name of this process's GPU with this index for `tf.device`, or None on CPUs."""
    if not tf.config.list_logical_devices("GPU"):
        return None
    return f"GPU:{device}"


def _call_here(function: Any, slices: list[Slice]) -> Any:
    return function(slices)


class Compiled:
    """A function (slices, one per device) -> tensors, compiled once for slices of any size.

    The sizes of slices differ between workers and in the last batch of an epoch. On CPUs one graph computes
    all sizes, which costs no speed and halves the compilation. XLA needs static sizes and compiles for each
    (`fixed`). So do GPUs: for dynamic sizes TensorFlow inserts a transpose before and after every batch
    normalisation. `columns` describes inputs and targets if some are sequences of different length; then one
    graph is compiled. `call` calls the compiled function with the slices, by default in this process.
    """

    def __init__(
        self,
        function: Callable[[list[Slice]], Any],
        *,
        fixed: bool = False,
        columns: tuple[Described, Described] | None = None,
        call: Callable[[Any, list[Slice]], Any] = _call_here,
    ) -> None:
        self._function = function
        self._call = call
        self._fixed = fixed
        self._columns = columns
        self._compiled: Any = None

    def __call__(self, call: Call) -> Any:
        """Call the compiled function with slices, staged or as read."""
        slices = tensors_of(call)
        if self._compiled is None:
            fixed = self._fixed or (self._columns is None and gpu(0) is not None)
            signature = None
            if not fixed:
                signature = [_any_size(slices, self._columns)]
            self._compiled = tf.function(
                self._function,
                input_signature=signature,
                autograph=False,
            )
        return self._call(self._compiled, slices)


def _any_size(
    slices: list[Slice], columns: tuple[Described, Described] | None
) -> list[Slice]:
    def spec(tensor: Any, column: Column | None = None) -> Any:
        lengths = tensor.shape.as_list()  # steps and rows first
        if len(lengths) > 1:
            lengths[1] = None
        if column is not None and column.sequence:
            lengths[2] = None
        return tf.TensorSpec(lengths, tensor.dtype)

    def specs(part: Slice) -> Slice:
        if columns is None:
            inputs = map_columns(spec, part.inputs)
            targets = map_columns(spec, part.targets)
        else:
            inputs = map_columns(spec, part.inputs, columns[0])
            targets = map_columns(spec, part.targets, columns[1])
        return Slice(inputs, targets, *(spec(number) for number in part[2:]))

    return [specs(part) for part in slices]


def scale_inputs(inputs: Any, scale: float | None) -> Any:
    """Scale stored integers to [0, 1] in Keras's float type; without a scale, return `in_floatx(inputs)`."""
    if scale is None:
        return in_floatx(inputs)
    floatx = keras.config.floatx()
    return map_columns(
        lambda stored: tf.cast(stored, floatx) * tf.constant(scale, floatx),
        inputs,
    )


def in_floatx(columns: Any) -> Any:
    """Cast floating-point columns to Keras's float type; leave other types unchanged."""
    floatx = keras.config.floatx()

    def converted(array: Any) -> Any:
        if array.dtype.is_floating:
            return tf.cast(array, floatx)
        return array

    return map_columns(converted, columns)
