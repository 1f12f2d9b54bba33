"""Any number of workers, computed one after another on one device."""

from typing import Any

import tensorflow as tf

from scalestudy.cluster.placement import Placement
from scalestudy.data.columns import map_columns
from scalestudy.data.loading.slices import Slice
from scalestudy.engines.group import Joined
from scalestudy.engines.tensorflow.strategies.replicas import (
    CompiledReplicas,
    Gradient,
    Gradients,
    TensorGroup,
)


def join(placement: Placement, *, workers: int, device: str, communication: str) -> Joined:
    """All workers in one process."""
    group = TensorGroup()
    return Joined(group, Virtual(group, workers, slices=[(0, workers)]))


class Virtual(CompiledReplicas):
    """n workers on one device: how a model converges at 14 or 64 workers, studied on a laptop.

    Each worker's slice is computed by itself, with its own batch-norm statistics, and the gradients
    are summed as the workers' would be. Memory is that of one worker. Synchronised batch
    normalisation joins the slices in every layer, so then the global batch is computed as one: the
    result is that of synchronised workers, but says nothing of how workers combine.
    """

    def worker_sums(self, gradient: Gradient, part: Slice, *, together: bool) -> tuple[Gradients, Any]:
        """Gradients and losses summed over the n slices of the global batch."""
        if together or self.workers == 1:
            return gradient(part)
        workers = tf.constant(self.workers, tf.int64)

        def slice_of(rank: Any) -> Slice:
            start, stop = rank * part.total // workers, (rank + 1) * part.total // workers
            count = stop - start
            rows = tf.maximum(count, 1)  # an empty slice computes one row that counts for nothing
            begin = tf.minimum(start, part.total - 1)

            def rows_of(array: Any) -> Any:
                return array[begin : begin + rows]

            return part._replace(
                inputs=map_columns(rows_of, part.inputs), targets=map_columns(rows_of, part.targets),
                start=start, count=count, first=tf.equal(rank, 0),
            )  # fmt: skip

        gradients, losses = gradient(slice_of(tf.constant(0, tf.int64)))

        def body(rank: Any, sums: Gradients, loss: Any) -> tuple[Any, Gradients, Any]:
            more, another = gradient(slice_of(rank))
            return rank + 1, [a + b for a, b in zip(sums, more, strict=True)], loss + another

        _, gradients, losses = tf.while_loop(
            lambda rank, *_: rank < workers,
            body,
            (tf.constant(1, tf.int64), gradients, losses),
            parallel_iterations=1,
        )
        return gradients, losses
