"""The loss of a task: of one output or several, with what it trains of its own."""

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import keras

from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.loss_of import loss_of, of_data_alone
from scalestudy.tasks.outputs import Losses, refuse_unknown, summed
from scalestudy.tasks.own_weights import build_loss, weights_of


def task_losses(
    given: Any, module: ModuleType, model: keras.Model, outputs: list[str], data: DataInfo
) -> tuple[Losses, list[keras.Variable]]:
    """(targets, outputs) -> losses of shape [B], and the variables of the losses.

    Args:
        given: `loss` of the task file; a dictionary by the names of outputs, or for all of them together.
        module: The task file.
        model: Its model.
        outputs: Names of the model's outputs.
        data: What there is to know of the data.

    Raises:
        UserError: For names that there are none of, or what is no loss.
    """
    file = str(module.__file__)
    told = given(data) if of_data_alone(given) else given
    if not isinstance(told, Mapping):
        made = _made(told)
        build_loss(made, model, data)
        # A name or a function as it was given: a function of the data may have looked at class weights.
        whole = made if isinstance(made, keras.Loss | keras.layers.Layer) else given
        return loss_of(whole, data, file), weights_of([made], file)
    refuse_unknown(told, outputs, "outputs, for losses,", file)
    if isinstance(data.targets, Mapping):
        refuse_unknown(told, data.targets, "targets, for losses,", file)
    by_output = getattr(module, "loss_weights", {})
    refuse_unknown(by_output, told, "losses, for loss_weights,", file)
    each = {name: _made(loss) for name, loss in told.items()}
    losses = {name: loss_of(loss, of_output(data, name), file) for name, loss in each.items()}
    return summed(losses, by_output, outputs), weights_of(each.values(), file)


def of_output(data: DataInfo, name: str) -> DataInfo:
    """What there is to know of the data for one output: its target, and the classes of that."""
    if not isinstance(data.targets, Mapping) or name not in data.targets:
        return data
    return replace(data, targets=data.targets[name], classes=data.targets[name].classes)


def _made(given: Any) -> Any:
    """A loss from its class; anything else as it is."""
    return (
        given() if isinstance(given, type) and issubclass(given, keras.Loss | keras.layers.Layer) else given
    )
