"""Operations on labels and outputs for losses and metrics.

Targets are labels of samples [B] or of pixels [B, H, W]. Outputs have one more axis, with a probability for
each class, or a single one for the second of two classes.
"""

from typing import Any

import keras
import numpy as np

LOGITS = "_keras_logits"
"""Private attribute in which Keras keeps the logits of a softmax or sigmoid."""


def split_ignored(targets: Any, ignore: int | None) -> tuple[Any, Any]:
    """Return targets with 0 in place of `ignore`, and the mask of valid labels (None if all are valid)."""
    if ignore is None:
        return targets, None
    ops = keras.ops
    valid = ops.not_equal(ops.cast(targets, "int64"), ignore)  # int32 would run on the host
    return ops.where(valid, targets, ops.zeros_like(targets)), valid


def is_of(targets: Any, classes: int) -> Any:
    """Return a boolean one-hot encoding of labels, shape [..., classes]."""
    return keras.ops.equal(keras.ops.expand_dims(keras.ops.cast(targets, "int64"), -1), np.arange(classes))


def likeliest(outputs: Any) -> Any:
    """Return the index of the most probable class, the first of equals; int64 of shape [...].

    A single channel is the probability of class 1, which is predicted from 0.5 on.
    """
    ops = keras.ops
    if outputs.shape[-1] == 1:
        return ops.cast(ops.greater_equal(outputs[..., 0], 0.5), "int64")
    # Keras's argmax of floats checks signs in int32; argmax of booleans does not.
    best = ops.equal(outputs, ops.max(outputs, axis=-1, keepdims=True))
    return ops.cast(ops.argmax(best, axis=-1), "int64")


def probabilities(outputs: Any) -> Any:
    """Return the probability of each class, shape [..., classes]; expand a single channel to two classes."""
    return keras.ops.concatenate([1 - outputs, outputs], axis=-1) if outputs.shape[-1] == 1 else outputs


def widened(outputs: Any) -> Any:
    """Convert 16-bit outputs and the logits attached to them to float32; return others unchanged."""
    ops = keras.ops
    if keras.backend.standardize_dtype(outputs.dtype) not in ("float16", "bfloat16"):
        return outputs
    wide, logits = ops.cast(outputs, "float32"), getattr(outputs, LOGITS, None)
    if logits is not None:
        setattr(wide, LOGITS, ops.cast(logits, "float32"))
    return wide


def total(truths: Any) -> Any:
    """Count true values over all axes but the last, exactly, as float64.

    Rows are summed in float32, which is exact for ones, and the sums of rows in float64.
    """
    ops, axes = keras.ops, len(truths.shape) - 1
    rows = ops.cast(truths, "float32")
    if axes > 1:
        rows = ops.sum(rows, axis=axes - 1)
        axes -= 1
    return ops.sum(ops.cast(rows, "float64"), axis=tuple(range(axes)))


def flat(values: Any, valid: Any, fill: Any) -> Any:
    """Flatten values to shape [N], with `fill` where `valid` is False."""
    ops = keras.ops
    if valid is not None:
        values = ops.where(valid, values, ops.full_like(values, fill))
    return ops.reshape(values, (-1,))


def mean_over_rest(losses: Any) -> Any:
    """Return the mean of `losses` [B, ...] over all axes but the first, shape [B]."""
    rest = tuple(range(1, len(losses.shape)))
    return keras.ops.mean(losses, axis=rest) if rest else losses
