"""Losses of labels by name, with one value per sample, and the operations on labels that metrics share.

Targets are labels of samples [B] or of pixels [B, H, W]. Outputs have one more axis, with a probability for
each class, or a single one for the second of two classes.

Each loss takes the description of the data and returns a function (targets, outputs) -> losses of shape [B],
float32 or wider. Ignored pixels do not count. No loss sums over a batch: a Dice loss of a whole batch would
depend on how the batch is divided between workers.

Cross-entropies are computed from the logits if the last layer is a softmax or sigmoid of Keras.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import keras
import numpy as np

from scalestudy.config.formula import FormulaTerm
from scalestudy.tasks.task import DataInfo
from scalestudy.util.registry import Registry

LOGITS = "_keras_logits"
"""Private attribute in which Keras keeps the logits of a softmax or sigmoid."""
Loss = Callable[[Any, Any], Any]
"""(targets, outputs) -> losses of shape [B]."""
TINY = 1e-7
"""Lower bound of the arguments of roots and powers, to keep their derivatives finite."""
NAMED: Registry[Callable[..., Loss]] = Registry(
    "scalestudy.losses",
    lambda: {
        "bce": cross_entropy,
        "cross_entropy": cross_entropy,
        "focal": focal,
        "dice": dice,
    },
)
"""Losses by their names in study and task files."""


def constant(numbers: float | tuple[float, ...], like: Any) -> Any:
    """Return numbers as a tensor of the type and on the device of `like`.

    `keras.ops` makes a tensor of each number it gets. On PyTorch that is a copy, for which the host waits
    until a GPU has done all its work, so there each constant is made once for a device.
    """
    dtype = keras.backend.standardize_dtype(like.dtype)
    if keras.backend.backend() == "torch":
        return _on_device(numbers, dtype, str(like.device))
    # Part of the graph that is being traced, so there is nothing to keep.
    return keras.ops.convert_to_tensor(np.asarray(numbers, dtype))


@lru_cache(maxsize=256)
def _on_device(numbers: float | tuple[float, ...], dtype: str, device: str) -> Any:
    return keras.ops.convert_to_tensor(np.asarray(numbers), dtype).to(device)


def split_ignored(targets: Any, ignore: int | None) -> tuple[Any, Any]:
    """Return targets with 0 in place of `ignore`, and the mask of valid labels (None if all are valid)."""
    if ignore is None:
        return targets, None
    ops = keras.ops
    valid = ops.cast(targets, "int64") != ignore  # int32 would run on the host
    zeros = ops.zeros_like(targets)
    return ops.where(valid, targets, zeros), valid


def is_of(targets: Any, classes: int) -> Any:
    """Return a boolean one-hot encoding of labels, shape [..., classes]."""
    ops = keras.ops
    indices = ops.expand_dims(ops.cast(targets, "int64"), -1)
    numbers = constant(tuple(range(classes)), indices)
    return ops.equal(indices, numbers)


def likeliest(outputs: Any) -> Any:
    """Return the index of the most probable class, the first of equals; int64 of shape [...].

    A single channel is the probability of class 1, which is predicted from 0.5 on.
    """
    ops = keras.ops
    if outputs.shape[-1] == 1:
        return ops.cast(outputs[..., 0] >= 0.5, "int64")
    # Keras's argmax of floats checks signs in int32; argmax of booleans does not.
    highest = ops.max(outputs, axis=-1, keepdims=True)
    best = ops.equal(outputs, highest)
    return ops.cast(ops.argmax(best, axis=-1), "int64")


def widen(outputs: Any) -> Any:
    """Convert 16-bit outputs and the logits attached to them to float32; return others unchanged."""
    ops = keras.ops
    if keras.backend.standardize_dtype(outputs.dtype) not in ("float16", "bfloat16"):
        return outputs
    wide = ops.cast(outputs, "float32")
    logits = getattr(outputs, LOGITS, None)
    if logits is not None:
        setattr(wide, LOGITS, ops.cast(logits, "float32"))
    return wide


def total(truths: Any) -> Any:
    """Count true values over all axes but the last, exactly, as float64.

    Rows are summed in float32, which is exact for ones, and the sums of rows in float64.
    """
    ops = keras.ops
    axes = len(truths.shape) - 1
    rows = ops.cast(truths, "float32")
    if axes > 1:
        axes -= 1
        rows = ops.sum(rows, axis=axes)
    wide = ops.cast(rows, "float64")
    return ops.sum(wide, axis=tuple(range(axes)))


def mean_over_rest(losses: Any) -> Any:
    """Return the mean of `losses` [B, ...] over all axes but the first, shape [B]."""
    rest = tuple(range(1, len(losses.shape)))
    if not rest:
        return losses
    return keras.ops.mean(losses, axis=rest)


def cross_entropy(data: DataInfo) -> Loss:
    """−w_t log p_t, averaged over the labels of a sample; binary cross-entropy for one output channel.

    w are the class weights of the data, if any.
    """

    def losses(targets: Any, outputs: Any) -> Any:
        targets, valid = split_ignored(targets, data.ignore)
        entropies = _entropies(targets, outputs)
        return _average(data, targets, valid, entropies)

    return losses


# One function: for a single output channel it is the binary cross-entropy.
bce = cross_entropy


def focal(data: DataInfo, *, gamma: float = 2.0) -> Loss:
    """−w_t (1 − p_t)^γ log p_t, averaged over the labels of a sample (Lin et al. 2017, where w is α)."""

    def losses(targets: Any, outputs: Any) -> Any:
        ops = keras.ops
        targets, valid = split_ignored(targets, data.ignore)
        entropies = _entropies(targets, outputs)
        # 1 − p_t, accurate for small values
        wrong = -ops.expm1(-entropies)
        wrong = ops.maximum(wrong, constant(TINY, entropies))
        focused = wrong**gamma * entropies
        return _average(data, targets, valid, focused)

    return losses


def dice(data: DataInfo, *, smooth: float = 1.0) -> Loss:
    """1 − (2 Σ p y + s)/(Σ p + Σ y + s) for each sample, averaged over classes (Milletari et al. 2016).

    Sums are over the pixels of a sample. One output channel has one class, the foreground; with more
    channels all classes count equally, including the background.
    """
    # Without smoothing, a class that neither occurs nor is predicted would divide by 0.
    half = max(smooth / 2, TINY)

    def losses(targets: Any, outputs: Any) -> Any:
        ops = keras.ops
        outputs = widen(outputs)
        targets, valid = split_ignored(targets, data.ignore)
        if outputs.shape[-1] == 1:
            labels = ops.expand_dims(targets, -1)
        else:
            labels = is_of(targets, data.classes)
        true = ops.cast(labels, outputs.dtype)
        if valid is not None:
            of_channels = ops.expand_dims(valid, -1)
            counted = ops.cast(of_channels, outputs.dtype)
            true = true * counted
            outputs = outputs * counted
        both = true * outputs
        axes = tuple(range(1, len(outputs.shape) - 1))
        if axes:
            both = ops.sum(both, axis=axes)
            true = ops.sum(true, axis=axes)
            outputs = ops.sum(outputs, axis=axes)
        # Halved above and below: of equal sums, the quotient is then exactly 1.
        outputs_alone = 0.5 * (outputs - both)
        true_alone = 0.5 * (true - both)
        mean = both + outputs_alone + true_alone
        index = (both + half) / (mean + half)
        return ops.mean(1.0 - index, axis=-1)

    return losses


def sum_of(terms: Sequence[FormulaTerm], data: DataInfo) -> Loss:
    """Return the weighted sum of losses."""
    parts = []
    for term in terms:
        make = NAMED.get(term.name)
        parts.append((term.weight, make(data, **term.parameters)))

    def losses(targets: Any, outputs: Any) -> Any:
        values = []
        for weight, loss in parts:
            value = loss(targets, outputs)
            if weight != 1:  # a product by 1 would be an operator in each step
                value = weight * value
            values.append(value)
        first, *others = values
        # `sum` alone would begin with 0, one more operator.
        return sum(others, first)

    return losses


def _entropies(targets: Any, outputs: Any) -> Any:
    """Return the cross-entropy of each label, shape [B, ...]."""
    ops = keras.ops
    outputs = widen(outputs)
    # From logits where they are known: the logarithm of a rounded probability loses its digits.
    logits = getattr(outputs, LOGITS, None)
    known = logits is not None
    values = outputs
    if known:
        values = logits
    if outputs.shape[-1] == 1:
        labels = ops.expand_dims(targets, -1)
        true = ops.cast(labels, outputs.dtype)
        return keras.losses.binary_crossentropy(true, values, from_logits=known)
    return keras.losses.sparse_categorical_crossentropy(
        targets,
        values,
        from_logits=known,
    )


def _average(
    data: DataInfo,
    targets: Any,
    valid: Any,
    losses: Any,
) -> Any:
    """Return the mean of each sample's losses over its valid labels; 0 without any."""
    ops = keras.ops
    if data.class_weights is not None:
        weights = constant(data.class_weights, losses)
        of_class = is_of(targets, data.classes)
        classes = ops.cast(of_class, losses.dtype)
        weight_of_label = ops.sum(classes * weights, axis=-1)
        losses = losses * weight_of_label
    if valid is None:
        return mean_over_rest(losses)
    counted = ops.cast(valid, losses.dtype)
    rest = tuple(range(1, len(losses.shape)))
    labels = ops.sum(counted, axis=rest)
    # At least 1: a sample whose labels are all ignored has a loss of 0, not of 0/0.
    divisor = ops.maximum(labels, constant(1, losses))
    total_loss = ops.sum(losses * counted, axis=rest)
    return total_loss / divisor
