"""Labels and outputs as losses and metrics take them: what is valid, what is true, what is predicted.

A label is that of a sample, targets [B], or that of a pixel, targets [B, H, W]; the outputs have one axis
more, of one probability for each class, or of a single one for the second of two classes.
"""

from typing import Any

import keras
import numpy as np

LOGITS = "_keras_logits"
"""Where Keras keeps the logits behind a softmax or sigmoid; private to it, and used here alone."""


def split_ignored(targets: Any, ignore: int | None) -> tuple[Any, Any]:
    """Targets with 0 where they count in nothing, and where they do count (None: everywhere)."""
    if ignore is None:
        return targets, None
    ops = keras.ops
    valid = ops.not_equal(ops.cast(targets, "int64"), ignore)  # on GPUs, int32 goes to the host
    return ops.where(valid, targets, ops.zeros_like(targets)), valid


def is_of(targets: Any, classes: int) -> Any:
    """Whether each label is of each class: truths of shape [..., classes]."""
    return keras.ops.equal(keras.ops.expand_dims(keras.ops.cast(targets, "int64"), -1), np.arange(classes))


def likeliest(outputs: Any) -> Any:
    """Index of the most probable class, the first of equals; int64 of shape [...].

    A single channel is the probability of class 1, which 0.5 is enough for.
    """
    ops = keras.ops
    if outputs.shape[-1] == 1:
        return ops.cast(ops.greater_equal(outputs[..., 0], 0.5), "int64")
    # Keras's argmax of numbers looks at their signs in int32; that of truths does not.
    best = ops.equal(outputs, ops.max(outputs, axis=-1, keepdims=True))
    return ops.cast(ops.argmax(best, axis=-1), "int64")


def probabilities(outputs: Any) -> Any:
    """Probability of each class, shape [..., classes]; of a single channel those of both classes."""
    return keras.ops.concatenate([1 - outputs, outputs], axis=-1) if outputs.shape[-1] == 1 else outputs


def widened(outputs: Any) -> Any:
    """Outputs of 16 bits as float32, with the logits that Keras keeps behind them; others as they are."""
    ops = keras.ops
    if keras.backend.standardize_dtype(outputs.dtype) not in ("float16", "bfloat16"):
        return outputs
    wide, logits = ops.cast(outputs, "float32"), getattr(outputs, LOGITS, None)
    if logits is not None:
        setattr(wide, LOGITS, ops.cast(logits, "float32"))
    return wide


def total(truths: Any) -> Any:
    """How many are true over all axes but the last: exact in float64, whatever their number.

    Ones are added up along rows in float32, and then in float64: exactly, in any order.
    """
    ops, axes = keras.ops, len(truths.shape) - 1
    rows = ops.cast(truths, "float32")
    if axes > 1:
        rows = ops.sum(rows, axis=axes - 1)
        axes -= 1
    return ops.sum(ops.cast(rows, "float64"), axis=tuple(range(axes)))


def flat(values: Any, valid: Any, fill: Any) -> Any:
    """Values of shape [...] as [N], with `fill` where they do not count."""
    ops = keras.ops
    if valid is not None:
        values = ops.where(valid, values, ops.full_like(values, fill))
    return ops.reshape(values, (-1,))


def mean_over_rest(losses: Any) -> Any:
    """Mean of `losses` (shape [B, ...]) over all axes but the first: shape [B]."""
    rest = tuple(range(1, len(losses.shape)))
    return keras.ops.mean(losses, axis=rest) if rest else losses
