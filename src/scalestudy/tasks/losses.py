"""Losses of one value per sample: ours by name, a formula of them, Keras's, or a function of the task file.

Each of ours takes the description of the data and returns a function (targets, outputs) -> losses of shape
[B], float32 or wider, for outputs that are probabilities. Ignored pixels do not count. No loss sums over a
batch: a Dice loss of a whole batch would depend on how the batch is divided between workers.

Cross-entropies are computed from the logits if the last layer is a softmax or sigmoid of Keras.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from scalestudy.config.formula import FormulaTerm, WrongFormula, is_formula
from scalestudy.config.objectives import LOSSES, loss_terms, refuse_unweighted, unweighted
from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.labels import is_of, mean_over_rest, split_ignored, widened
from scalestudy.util.errors import UserError
from scalestudy.util.registry import Registry

Loss = Callable[[Any, Any], Any]
"""(targets, outputs) -> losses of shape [B]."""
TINY = 1e-7
"""Lower bound of the arguments of roots and powers, to keep their derivatives finite."""


def cross_entropy(data: DataInfo, *, label_smoothing: float = 0.0) -> Loss:
    """−w_t log p_t, averaged over the labels of a sample; binary cross-entropy for one output channel.

    Args:
        data: Description of the data; its class weights w, if any, multiply the losses of each class.
        label_smoothing: ε. The target is 1 − ε for the true class, plus ε/C for each of the C classes
            (Szegedy et al. 2016).
    """

    def losses(targets: Any, outputs: Any) -> Any:
        targets, valid = split_ignored(targets, data.ignore)
        return _averaged(data, targets, valid, _entropies(data, targets, outputs, label_smoothing))

    return losses


bce = cross_entropy


def focal(data: DataInfo, *, gamma: float = 2.0) -> Loss:
    """−w_t (1 − p_t)^γ log p_t, averaged over the labels of a sample (Lin et al. 2017, where w is α)."""

    def losses(targets: Any, outputs: Any) -> Any:
        ops = keras.ops
        targets, valid = split_ignored(targets, data.ignore)
        entropies = _entropies(data, targets, outputs, 0.0)
        wrong = ops.maximum(-ops.expm1(-entropies), TINY)  # 1 − p_t, accurate for small values
        return _averaged(data, targets, valid, wrong**gamma * entropies)

    return losses


def tversky(data: DataInfo, *, alpha: float = 0.3, beta: float = 0.7, smooth: float = 1.0) -> Loss:
    """1 minus the mean over classes of (TP + s)/(TP + α FP + β FN + s) per sample (Salehi et al. 2017).

    TP = Σ p y, FP = Σ p (1 − y), FN = Σ (1 − p) y over the pixels of a sample. One output channel has one
    class, the foreground; with more channels all classes count equally, including the background.
    """

    def losses(targets: Any, outputs: Any) -> Any:
        return keras.ops.mean(1.0 - _index(data, targets, outputs, alpha, beta, smooth), axis=-1)

    return losses


def dice(data: DataInfo, *, smooth: float = 1.0) -> Loss:
    """1 − (2 Σ p y + s)/(Σ p + Σ y + s) for each sample, averaged over classes (Milletari et al. 2016)."""
    # The Tversky index with α = β = 1/2 and half the smoothing.
    return tversky(data, alpha=0.5, beta=0.5, smooth=smooth / 2)


def jaccard(data: DataInfo, *, smooth: float = 1.0) -> Loss:
    """1 − (Σ p y + s)/(Σ p + Σ y − Σ p y + s) per sample, averaged over classes (Rahman and Wang 2016)."""
    return tversky(data, alpha=1.0, beta=1.0, smooth=smooth)


NAMED: Registry[Callable[..., Loss]] = Registry(
    "scalestudy.losses",
    lambda: {
        "bce": bce,
        "cross_entropy": cross_entropy,
        "focal": focal,
        "dice": dice,
        "jaccard": jaccard,
        "tversky": tversky,
    },
)


def sum_of(terms: Sequence[FormulaTerm], data: DataInfo) -> Loss:
    """Return the weighted sum of losses."""
    parts = [(term.weight, NAMED.get(term.name)(data, **term.parameters)) for term in terms]

    def losses(targets: Any, outputs: Any) -> Any:
        values = [
            loss(targets, outputs) if weight == 1 else weight * loss(targets, outputs)
            for weight, loss in parts
        ]
        return sum(values[1:], values[0])

    return losses


def _entropies(data: DataInfo, targets: Any, outputs: Any, smoothing: float) -> Any:
    """Return the cross-entropy of each label, shape [B, ...]."""
    ops, outputs = keras.ops, widened(outputs)
    if outputs.shape[-1] == 1:
        true = ops.cast(ops.expand_dims(targets, -1), outputs.dtype)
        return keras.losses.binary_crossentropy(true, outputs, label_smoothing=smoothing)
    if smoothing == 0:
        return keras.losses.sparse_categorical_crossentropy(targets, outputs)
    true = ops.cast(is_of(targets, data.classes), outputs.dtype)
    return keras.losses.categorical_crossentropy(true, outputs, label_smoothing=smoothing)


def _averaged(data: DataInfo, targets: Any, valid: Any, losses: Any) -> Any:
    """Return the mean of each sample's losses over its valid labels; 0 without any."""
    ops = keras.ops
    if data.class_weights is not None:
        weights = np.asarray(data.class_weights, keras.backend.standardize_dtype(losses.dtype))
        losses = losses * ops.sum(ops.cast(is_of(targets, data.classes), losses.dtype) * weights, axis=-1)
    if valid is None:
        return mean_over_rest(losses)
    counted, rest = ops.cast(valid, losses.dtype), tuple(range(1, len(losses.shape)))
    return ops.sum(losses * counted, axis=rest) / ops.maximum(ops.sum(counted, axis=rest), 1)


def _index(data: DataInfo, targets: Any, outputs: Any, alpha: float, beta: float, smooth: float) -> Any:
    """Return the Tversky index of each sample and class, shape [B, classes] or [B, 1]."""
    ops, outputs = keras.ops, widened(outputs)
    targets, valid = split_ignored(targets, data.ignore)
    single = outputs.shape[-1] == 1
    true = ops.expand_dims(targets, -1) if single else is_of(targets, data.classes)
    true = ops.cast(true, outputs.dtype)
    if valid is not None:
        counted = ops.cast(ops.expand_dims(valid, -1), outputs.dtype)
        true, outputs = true * counted, outputs * counted
    both, axes = true * outputs, tuple(range(1, len(outputs.shape) - 1))
    if axes:
        both, true, outputs = (ops.sum(values, axis=axes) for values in (both, true, outputs))
    smooth = max(smooth, TINY)
    return (both + smooth) / (both + alpha * (outputs - both) + beta * (true - both) + smooth)


def loss_of(given: Any, data: DataInfo, where: str) -> Loss:
    """Return a loss (targets, outputs) -> [B]; `where` it is defined is for messages.

    `given` is a formula ("0.5*bce + dice"), the name of a Keras loss, a Keras loss or its class, a function
    (targets, outputs) -> losses [B, ...], or a function of the data that returns any of these.

    Raises:
        UserError: If the text names no loss, or the loss does not support the given class weights.
    """
    if of_data_alone(given):
        loss = given(data)  # a function that it returns may use the class weights itself
        return _of_samples(loss) if inspect.isfunction(loss) else loss_of(loss, data, where)
    if isinstance(given, str) and is_formula(given, LOSSES):
        terms = _terms(given, where)
        if data.class_weights is not None:
            refuse_unweighted(terms)
        return sum_of(terms, data)
    if data.class_weights is not None:
        raise unweighted(getattr(given, "__name__", str(given)))
    return _of_samples(_of_keras(given, where) if isinstance(given, str) else given)


def refuse_no_loss(text: str, where: str) -> None:
    """Refuse a text that names no loss."""
    _terms(text, where) if is_formula(text, LOSSES) else _of_keras(text, where)


def _terms(text: str, where: str) -> tuple[FormulaTerm, ...]:
    try:
        return loss_terms(text)
    except WrongFormula as wrong:
        raise UserError(f"{wrong.expected} as the loss", f"{text!r} in {where}", wrong.action) from None


def _of_keras(name: str, where: str) -> Any:
    try:
        return keras.losses.get(name)
    except ValueError:
        try:
            loss_terms(name)
        except WrongFormula as wrong:
            action = f"{wrong.action} Or take the name of one of Keras's losses."
        raise UserError("the name of a loss", f"{name!r} in {where}", action) from None


def _of_samples(given: Any) -> Loss:
    loss = given() if isinstance(given, type) and issubclass(given, keras.Loss) else given
    # `call` returns the losses before Keras reduces them to a mean over the batch.
    values = loss.call if isinstance(loss, keras.Loss) else loss
    name = getattr(loss, "__name__", type(loss).__name__)
    pairwise = getattr(keras.losses, name, None) in (loss, type(loss)) and not name.lower().startswith(
        "sparse"
    )

    def of_samples(targets: Any, outputs: Any) -> Any:
        # Expand targets [B, ...] to [B, ..., 1] like the outputs; else Keras would average over samples.
        if pairwise and len(outputs.shape) == len(targets.shape) + 1 and outputs.shape[-1] == 1:
            targets = keras.ops.expand_dims(targets, -1)
        return mean_over_rest(values(targets, outputs))

    return of_samples


def of_data_alone(given: Any) -> bool:
    """Whether `given` is a function with one required parameter, the data."""
    return inspect.isfunction(given) and len(required(given)) == 1


def required(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters without a default."""
    parameters = inspect.signature(function).parameters.values()
    return [parameter for parameter in parameters if parameter.default is parameter.empty]
