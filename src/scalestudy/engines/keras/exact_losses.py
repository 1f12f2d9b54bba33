"""The losses of a compiled model, computed as one worker's part of the loss of a whole batch."""

import warnings
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from scalestudy.engines.context import Working
from scalestudy.engines.keras.private import CompiledParts, mask_of, weighted
from scalestudy.util.errors import UserError

TINY = 1e-30
"""Minimum divisor; if all weights are zero, the numerator is zero as well."""


def refuse_unreduced(compiled: CompiledParts) -> None:
    """Check that every loss is reduced to a scalar.

    Raises:
        UserError: If a loss has no reduction.
    """
    for part in compiled.parts:
        if part.loss.reduction in (None, "none"):
            raise UserError(
                'losses whose reduction is "sum_over_batch_size", "sum" or "mean_with_sample_weight"',
                f"{part.loss.name} with reduction {part.loss.reduction!r}",
                "Keep the default reduction.",
            )


def part_of(loss: keras.Loss, worker: Working) -> Callable[..., Any]:
    """Return a function for a worker's part of `loss`; the sum over workers is Keras's loss of the batch.

    Keras divides by the number of rows ("sum_over_batch_size"), by the number of unmasked rows, by the sum of
    weights, or not at all. The divisor is summed over the workers first.
    """
    floatx, rows = keras.config.floatx(), worker.slice
    share = ops.cast(rows.count, floatx) / ops.cast(rows.total, floatx)

    def part(targets: Any, outputs: Any, weights: Any = None) -> Any:
        mask = mask_of(outputs)
        targets, outputs = (
            keras.tree.map_structure(lambda values: ops.convert_to_tensor(values, dtype=loss.dtype), side)
            for side in (targets, outputs)
        )
        values = loss.call(targets, outputs)
        if not len(values.shape):
            warnings.warn(
                f"{loss.name} is one number for a batch: each worker has that of its own rows, the loss is "
                "their mean. It is exact if it gives a number for each sample.",
                stacklevel=2,
            )
        if weights is not None:
            weights = ops.convert_to_tensor(weights, dtype=loss.dtype)
        values, used = weighted(values, weights, mask)
        if loss.reduction == "sum":
            return ops.sum(values)
        by_weight = loss.reduction == "mean_with_sample_weight" and used is not None
        if not by_weight and mask is None:
            return ops.mean(values) * ops.cast(share, values.dtype)
        if worker.sync_sum is None:
            raise UserError(
                "losses that each virtual worker can divide by itself",
                f"{loss.name}, divided by {'weights' if by_weight else 'what a mask leaves'} of all workers",
                "Use another strategy.",
            )
        divisor = ops.sum(used) if by_weight else ops.sum(ops.cast(mask, values.dtype))
        divisor = ops.where(rows.count > 0, divisor, ops.zeros_like(divisor))
        return ops.sum(values) / ops.maximum(worker.sync_sum(ops.stop_gradient(divisor)), TINY)

    return part
