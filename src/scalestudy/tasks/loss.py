"""The loss of a task file: one value per sample.

It is a loss by name or a formula of them, one of Keras or of PyTorch, or a function of the file.
"""

import copy
import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import keras

from scalestudy.config.formula import FormulaTerm, WrongFormula, is_formula
from scalestudy.config.objectives import (
    LOSSES,
    loss_terms,
    refuse_unweighted,
    unweighted,
)
from scalestudy.tasks.label_losses import LOGITS, Loss, mean_over_rest, sum_of
from scalestudy.tasks.task import DataInfo, is_module
from scalestudy.util.errors import UserError

OUTPUTS = re.compile("(output|logit|pred|prediction)s?|y_pred|y_hat")
TARGETS = re.compile("(target|label)s?|(y_)?true|truth|y|gt")
"""Usual names of the arguments of a loss, in lower case."""
OF_LOGITS = (
    keras.losses.BinaryCrossentropy,
    keras.losses.CategoricalCrossentropy,
    keras.losses.SparseCategoricalCrossentropy,
    keras.losses.binary_crossentropy,
    keras.losses.categorical_crossentropy,
    keras.losses.sparse_categorical_crossentropy,
)
"""Losses of Keras that are more accurate from logits than from probabilities."""


def resolve_loss(
    model: Any,
    given: Any,
    data: DataInfo,
    where: str,
) -> Loss:
    """Return a loss (targets, outputs) -> [B], by `loss_of` for a Keras model, else by `module_loss`.

    Raises:
        UserError: For an unknown name, or an object that is no loss.
    """
    refuse_unknown_loss(given, where)
    if isinstance(model, keras.Model):
        return loss_of(given, data, where)
    return module_loss(model, given, data, where)


def _refuse_swapped(given: Any, where: str) -> None:
    """Refuse a function (outputs, targets), PyTorch's order: many would run and give wrong losses."""
    if not inspect.isfunction(given):
        return
    if given.__module__.startswith(("torch.", "keras.")):
        return
    parameters = list(inspect.signature(given).parameters)
    names = [name.lower().strip("_") for name in parameters[:2]]
    if len(names) == 2 and OUTPUTS.fullmatch(names[0]) and TARGETS.fullmatch(names[1]):
        raise UserError(
            f"a loss (targets, outputs) in {where}",
            f"{given.__name__}({', '.join(parameters)})",
            "Swap them: targets come first, as in Keras.",
        )


def refuse_unknown_loss(given: Any, where: str) -> None:
    """Refuse `loss` of a task file that is a dictionary, or a text which names no loss.

    Raises:
        UserError: Also for a function whose arguments are swapped.
    """
    _refuse_swapped(given, where)
    if isinstance(given, Mapping):
        raise UserError(
            f"one loss in {where}",
            f"a dictionary of {', '.join(map(str, given))}",
            "Write a function of all targets and outputs: def loss(targets, outputs).",
        )
    if isinstance(given, str):
        if is_formula(given, LOSSES):
            _terms(given, where)
        else:
            _of_keras(given, where)


def module_loss(
    model: Any,
    given: Any,
    data: DataInfo,
    where: str,
) -> Loss:
    """Return a loss (targets, outputs) -> [B] of a module's outputs; the counterpart of `loss_of` for Keras.

    A PyTorch loss (`nn.CrossEntropyLoss()`, its class, or `torch.nn.functional.cross_entropy`) is called
    with (outputs, targets) and returns a loss for each element. A function of the task file is called with
    (targets, outputs). A loss by name, or of Keras, receives probabilities with channels last.

    Raises:
        UserError: As in `loss_of`.
    """
    asked = of_data_alone(given)  # such a function may use the class weights itself
    if asked:
        given = given(data)
    pytorch = _of_pytorch(given)
    if pytorch is None and not inspect.isfunction(given):
        named = loss_of(given, data, where)

        def named_loss(targets: Any, outputs: Any) -> Any:
            return named(targets, model.probabilities(outputs))

        return named_loss
    if data.class_weights is not None and not asked:
        # A loss that ignored the weights would train another study than the file says.
        raise unweighted(getattr(given, "__name__", type(given).__name__))

    def loss(targets: Any, outputs: Any) -> Any:
        if pytorch is None:  # a function of the task file
            return mean_over_rest(given(class_indices(targets), outputs))
        return mean_over_rest(pytorch(outputs, _fitted(targets, outputs)))

    return loss


def _of_pytorch(given: Any) -> Any:
    """Return (outputs, targets) -> a loss for each element; None if `given` is not a PyTorch loss."""
    is_class = isinstance(given, type)
    functional = getattr(given, "__module__", None) == "torch.nn.functional"
    if functional and not is_class:
        return partial(given, reduction="none")
    # Only here: an environment of TensorFlow's may have none.
    import torch

    loss = given
    if is_class and issubclass(given, torch.nn.Module):
        loss = given()
    if not is_module(loss):
        return None
    # A copy: the file's own object keeps its reduction. Its weights move to the device of the run.
    loss = copy.copy(loss).to(keras.ops.convert_to_tensor(0.0).device)
    if hasattr(loss, "reduction"):  # the mean of a worker's slice would not be exact
        loss.reduction = "none"
    return loss


def class_indices(targets: Any) -> Any:
    """Convert integer targets to int64, as PyTorch requires for class indices."""

    def converted(values: Any) -> Any:
        if values.is_floating_point():
            return values
        return values.long()

    return keras.tree.map_structure(converted, targets)


def _fitted(targets: Any, outputs: Any) -> Any:
    """Convert targets for a PyTorch loss of these outputs: to class indices, or to the outputs' type."""
    if not keras.ops.is_tensor(targets) or not keras.ops.is_tensor(outputs):
        return class_indices(targets)
    if outputs.ndim == targets.ndim + 1:
        if outputs.shape[1] > 1:
            return class_indices(targets)
        targets = targets.unsqueeze(1)
    return targets.to(outputs.dtype)


def loss_of(given: Any, data: DataInfo, where: str) -> Loss:
    """Return a loss (targets, outputs) -> [B]; `where` it is defined is for messages.

    `given` is a formula ("0.5*bce + dice"), the name of a Keras loss, a Keras loss or its class, a function
    (targets, outputs) -> losses [B, ...], or a function of the data that returns any of these.

    Raises:
        UserError: If the text names no loss, or the loss does not support the given class weights.
    """
    if of_data_alone(given):
        loss = given(data)
        if inspect.isfunction(loss):  # it may use the class weights itself
            return _of_samples(loss)
        return loss_of(loss, data, where)
    if isinstance(given, str) and is_formula(given, LOSSES):
        terms = _terms(given, where)
        if data.class_weights is not None:
            refuse_unweighted(terms)
        return sum_of(terms, data)
    if data.class_weights is not None:
        raise unweighted(getattr(given, "__name__", str(given)))
    if isinstance(given, str):
        given = _of_keras(given, where)
    return _of_samples(given)


def _terms(text: str, where: str) -> tuple[FormulaTerm, ...]:
    try:
        return loss_terms(text)
    except WrongFormula as wrong:
        raise UserError(
            f"{wrong.expected} as the loss",
            f"{text!r} in {where}",
            wrong.action,
        ) from None


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
    loss = given
    if isinstance(given, type) and issubclass(given, keras.Loss):
        loss = given()
    values = loss
    if isinstance(loss, keras.Loss):
        # `call` returns the losses before Keras reduces them to a mean over the batch.
        values = loss.call
    name = getattr(loss, "__name__", type(loss).__name__)
    of_keras = getattr(keras.losses, name, None) in (loss, type(loss))
    pairwise = of_keras and not name.lower().startswith("sparse")
    from_logits = _of_logits(loss)

    def of_samples(targets: Any, outputs: Any) -> Any:
        # Expand targets [B, ...] to [B, ..., 1] like the outputs; else Keras would average over samples.
        if pairwise and _has_one_unit_more(outputs, targets):
            targets = keras.ops.expand_dims(targets, -1)
        logits = getattr(outputs, LOGITS, None)
        if from_logits is not None and logits is not None:
            return mean_over_rest(from_logits(targets, logits))
        return mean_over_rest(values(targets, outputs))

    return of_samples


def _has_one_unit_more(outputs: Any, targets: Any) -> bool:
    """Whether outputs [B, ..., 1] have an axis that targets [B, ...] lack."""
    return len(outputs.shape) == len(targets.shape) + 1 and outputs.shape[-1] == 1


def _of_logits(loss: Any) -> Any:
    """Return the cross-entropy for logits that Keras computes of probabilities; None for other losses.

    On PyTorch, Keras clips the probabilities, where the gradient then vanishes.
    """
    if isinstance(loss, keras.Loss):
        settings = loss.get_config()
        if type(loss) not in OF_LOGITS or settings["from_logits"]:
            return None
        return type(loss).from_config(settings | {"from_logits": True}).call
    if loss not in OF_LOGITS:
        return None
    return partial(loss, from_logits=True)


def of_data_alone(given: Any) -> bool:
    """Whether `given` is a function with one required parameter, the data."""
    return inspect.isfunction(given) and len(required(given)) == 1


def required(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters without a default."""
    parameters = inspect.signature(function).parameters.values()
    return [
        parameter for parameter in parameters if parameter.default is parameter.empty
    ]
