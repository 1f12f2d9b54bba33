"""Computing a slice in several parts in turn: virtual workers, and micro-batches of a worker."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from scalestudy.data.samples import Slice, leaves
from scalestudy.engines.tensorflow.gradients import Gradient, Gradients


def in_parts(gradient: Gradient, parts: int, variables: Sequence[Any] = ()) -> Gradient:
    """Return a function that computes a slice in parts and adds up their gradients. Compiled.

    The sizes of parts differ by at most one row. Memory is needed for one part only. Layers see each part as
    a separate slice, with its own batch statistics.

    Args:
        gradient: Computes the gradients of one part.
        parts: Number of parts, at least 2. An empty part computes one row with weight 0.
        variables: Variables of the gradients. If given, the last part is computed outside the loop over the
            others, so that the exchange of a gradient can start before all gradients are complete.
    """

    def part_of(whole: Slice, index: Any) -> Slice:
        rows = leaves(whole.inputs)[0].shape[0]
        start, stop = index * whole.count // parts, (index + 1) * whole.count // parts
        count = stop - start
        length = tf.maximum(count, 1)
        begin = tf.minimum(start, tf.maximum(whole.count, 1) - 1)
        alike = rows // parts if rows is not None and rows % parts == 0 else None

        def rows_of(array: Any) -> Any:
            taken = array[begin : begin + length]
            taken.set_shape([alike, *array.shape[1:]])  # GPUs and XLA need static sizes
            return taken

        return whole.mapped(
            rows_of,
            start=whole.start + start,
            count=count,
            first=tf.logical_and(whole.first, tf.equal(index, 0)),
        )

    def added(sums: tuple[Gradients, Any], more: tuple[Gradients, Any]) -> tuple[Gradients, Any]:
        return [a + b for a, b in zip(sums[0], more[0], strict=True)], sums[1] + more[1]

    def total(whole: Slice) -> tuple[Gradients, Any]:
        def body(index: Any, *sums: Any) -> tuple[Any, Gradients, Any]:
            return index + 1, *added(sums, gradient(part_of(whole, index)))

        first, last = tf.constant(0, tf.int64), tf.constant(parts - 1, tf.int64)
        if variables:
            sums = [tf.zeros(value.shape, value.dtype) for value in variables], tf.zeros([], tf.float64)
            begun, end = first, last
        else:
            sums = gradient(part_of(whole, first))
            begun, end = first + 1, last + 1
        _, *sums = tf.while_loop(lambda index, *_: index < end, body, (begun, *sums), parallel_iterations=1)
        return added(sums, gradient(part_of(whole, last))) if variables else tuple(sums)

    return total
