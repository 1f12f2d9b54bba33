"""The loss of a task: by a formula, by Keras's name, or a function; one number for each sample."""

import inspect
from collections.abc import Callable
from typing import Any

import keras

from scalestudy.study.formula import WrongFormula, called
from scalestudy.study.objectives import LOSSES, loss_terms, refuse_unweighted, unweighted
from scalestudy.tasks.base import DataInfo, mean_over_rest
from scalestudy.tasks.losses import sum_of
from scalestudy.util.errors import UserError


def loss_of(given: Any, data: DataInfo, where: str) -> Callable[[Any, Any], Any]:
    """(targets, outputs) -> losses of shape [B].

    Args:
        given: A formula ("0.5*bce + dice"), the name of a loss of Keras's, one of its losses or their
            classes, or a function (targets, outputs) -> losses of shape [B, ...]; or a function of the data
            alone that gives any of these.
        data: What there is to know of the data.
        where: Where it was written, for messages.

    Raises:
        UserError: If the text names no loss, or class weights are given to one that takes none.
    """
    if of_data_alone(given):
        made = given(data)  # a function that it gives may have looked at the class weights
        return _plain(made) if inspect.isfunction(made) else loss_of(made, data, where)
    if isinstance(given, str) and _is_formula(given):
        try:
            terms = loss_terms(given)
        except WrongFormula as wrong:
            raise UserError(f"{wrong.expected} as the loss", f"{given!r} in {where}", wrong.action) from None
        if data.class_weights is not None:
            refuse_unweighted(terms)
        return sum_of(terms, data)
    if data.class_weights is not None:
        raise unweighted(getattr(given, "__name__", str(given)))
    return _plain(_found(given, where) if isinstance(given, str) else given)


def of_data_alone(given: Any) -> bool:
    """Whether it is a function that takes the data, and nothing else that it must be given."""
    if not inspect.isfunction(given):
        return False
    needed = [each for each in inspect.signature(given).parameters.values() if each.default is each.empty]
    return len(needed) == 1


def _is_formula(text: str) -> bool:
    """Keras's names have no signs in them; where both have a name, it is ours, which is of samples."""
    return called(text) in LOSSES or not text.replace("_", "").isalnum()


def _found(name: str, where: str) -> Any:
    try:
        return keras.losses.get(name)
    except ValueError:
        try:
            loss_terms(name)
        except WrongFormula as wrong:
            action = f"{wrong.action} Or take the name of one of Keras's losses."
        raise UserError("a loss that has a name", f"{name!r} in {where}", action) from None


def _plain(given: Any) -> Callable[[Any, Any], Any]:
    loss = given() if isinstance(given, type) and issubclass(given, keras.Loss) else given
    # `call` gives the losses before Keras takes their mean, which would forget how many there were.
    each = loss.call if isinstance(loss, keras.Loss) else loss
    if not _is_pairwise(loss):
        return lambda targets, outputs: mean_over_rest(each(targets, outputs))
    return lambda targets, outputs: mean_over_rest(each(_like(targets, outputs), outputs))


def _is_pairwise(loss: Any) -> bool:
    """Whether it is one of Keras's losses that compare numbers of the same shape."""
    name = getattr(loss, "__name__", type(loss).__name__)
    return getattr(keras.losses, name, None) in (loss, type(loss)) and not name.lower().startswith("sparse")


def _like(targets: Any, outputs: Any) -> Any:
    """Targets [B, ...] for outputs [B, ..., 1] as [B, ..., 1]: Keras would take means over samples."""
    one = len(outputs.shape) == len(targets.shape) + 1 and outputs.shape[-1] == 1
    return keras.ops.expand_dims(targets, -1) if one else targets
