"""Any number of workers, computed one after another on one device."""

from typing import Any

import tensorflow as tf

from scalestudy.strategies.base import Block, Gradient, Gradients, Strategy


class Virtual(Strategy):
    """n workers on one device: how a model converges at 14 or 64 workers, studied on a laptop.

    Each worker's slice is computed by itself, with its own batch-norm statistics, and the gradients
    are summed as the workers' would be. Memory is that of one worker. Synchronised batch
    normalisation joins the slices in every layer, so then the global batch is computed as one.
    """

    name = "virtual"

    def worker_sums(self, gradient: Gradient, block: Block) -> tuple[Gradients, Any]:
        """Gradients and losses summed over the n slices of the block."""
        if self.sync_batch_norm or self.workers == 1:
            return gradient(block)
        workers = tf.constant(self.workers, tf.int64)

        def slice_of(rank: Any) -> Block:
            start, stop = rank * block.total // workers, (rank + 1) * block.total // workers
            count = stop - start
            rows = tf.maximum(count, 1)  # an empty slice computes one row that counts for nothing
            begin = tf.minimum(start, block.total - 1)
            return Block(
                block.inputs[begin : begin + rows], block.targets[begin : begin + rows],
                start, count, block.total, block.step, tf.equal(rank, 0),
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
