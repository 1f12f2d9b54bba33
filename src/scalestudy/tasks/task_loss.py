"""The loss of a task file: one value per sample, and the variables that it trains."""

import inspect
import re
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import keras

from scalestudy.tasks.base import DataInfo, by_name, refuse_unknown, symbolic, symbolic_outputs
from scalestudy.tasks.losses import Loss, loss_of, of_data_alone, refuse_no_loss
from scalestudy.util.errors import UserError

OUTPUTS = re.compile("(output|logit|pred|prediction)s?|y_pred|y_hat")
TARGETS = re.compile("(target|label)s?|(y_)?true|truth|y|gt")
"""Usual names of the arguments of a loss, in lower case."""


def task_loss(
    given: Any, module: ModuleType, model: keras.Model, outputs: list[str], data: DataInfo
) -> tuple[Loss, list[keras.Variable]]:
    """Return a loss (targets, outputs) -> [B], and its variables.

    `given` is `loss` of the task file: one loss for all outputs, or a dictionary by output.

    Raises:
        UserError: For an unknown name, an object that is no loss, or a variable that is not trainable.
    """
    file = str(module.__file__)
    resolved = given(data) if of_data_alone(given) else given
    if not isinstance(resolved, Mapping):
        loss = _instance(resolved)
        _build(loss, model, data)
        # Pass on `given`, not `resolved`: a function of the data may use the class weights itself.
        whole = loss if isinstance(loss, keras.Loss | keras.layers.Layer) else given
        return resolved_loss(model, whole, data, file), _variables_of([loss], file)
    refuse_unknown(resolved, outputs, "outputs, for losses,", file)
    if isinstance(data.targets, Mapping):
        refuse_unknown(resolved, data.targets, "targets, for losses,", file)
    weights = getattr(module, "loss_weights", {})
    refuse_unknown(weights, resolved, "losses, for loss_weights,", file)
    instances = {name: _instance(loss) for name, loss in resolved.items()}
    losses = {
        name: resolved_loss(model, loss, data.of_output(name), file) for name, loss in instances.items()
    }
    return summed(losses, weights, outputs), _variables_of(instances.values(), file)


def resolved_loss(model: Any, given: Any, data: DataInfo, where: str) -> Loss:
    """Return the loss by `loss_of` for a Keras model, or by `module_loss` for a PyTorch module."""
    _refuse_swapped(given, where)
    if isinstance(model, keras.Model):
        return loss_of(given, data, where)
    from scalestudy.tasks.module_objectives import module_loss

    return module_loss(model, given, data, where)


def _refuse_swapped(given: Any, where: str) -> None:
    """Refuse a function (outputs, targets), PyTorch's order: many would run and give wrong losses."""
    if not inspect.isfunction(given) or given.__module__.startswith(("torch.", "keras.")):
        return
    names = [name.lower().strip("_") for name in inspect.signature(given).parameters][:2]
    if len(names) == 2 and OUTPUTS.fullmatch(names[0]) and TARGETS.fullmatch(names[1]):
        raise UserError(
            f"a loss (targets, outputs) in {where}",
            f"{given.__name__}({', '.join(inspect.signature(given).parameters)})",
            "Swap them: targets come first, as in Keras.",
        )


def refuse_unknown_loss(given: Any, where: str) -> None:
    """Refuse `loss` of a task file, or one of its losses by output, that is a text which names no loss.

    Raises:
        UserError: Also for a function whose arguments are swapped.
    """
    for loss in given.values() if isinstance(given, Mapping) else [given]:
        _refuse_swapped(loss, where)
        if isinstance(loss, str):
            refuse_no_loss(loss, where)


def summed(losses: Mapping[str, Loss], weights: Mapping[str, float], names: list[str]) -> Loss:
    """Return the weighted sum of the outputs' losses for each sample; the default weight is 1."""

    def of_samples(targets: Any, outputs: Any) -> Any:
        named = by_name(names, outputs)
        terms = [weights.get(name, 1.0) * loss(targets[name], named[name]) for name, loss in losses.items()]
        return sum(terms[1:], terms[0])

    return of_samples


def _instance(given: Any) -> Any:
    is_class = isinstance(given, type) and issubclass(given, keras.Loss | keras.layers.Layer)
    return given() if is_class else given


def _build(loss: Any, model: keras.Model, data: DataInfo) -> None:
    """Build a loss that is a layer, so that its weights exist before a step is compiled."""
    if not isinstance(loss, keras.layers.Layer) or loss.built or not (data.inputs and data.targets):
        return
    try:
        outputs = symbolic_outputs(model, data.inputs)
    except Exception:  # raised by a user's class; `tasks.trial` finds the line
        return
    loss(
        symbolic(data.targets),
        keras.tree.map_structure(lambda output: keras.KerasTensor(output.shape, output.dtype), outputs),
    )


def _variables_of(losses: Iterable[Any], file: str) -> list[keras.Variable]:
    """Return the variables of losses that are or contain layers or variables, in order, each once."""
    variables: dict[int, keras.Variable] = {}
    visited: set[int] = set()

    def collect(thing: Any) -> None:
        if id(thing) in visited:
            return
        visited.add(id(thing))
        if isinstance(thing, keras.Variable):
            variables[id(thing)] = thing
        elif isinstance(thing, keras.layers.Layer):
            variables.update({id(variable): variable for variable in thing.variables})
        elif hasattr(thing, "named_parameters") and not isinstance(thing, type):  # a PyTorch module
            variables.update(
                {
                    id(value): keras.Variable(value, dtype=str(value.dtype).removeprefix("torch."), name=name)
                    for name, value in thing.named_parameters()
                }
            )
        elif isinstance(thing, keras.Loss | dict | list | tuple):
            inner = vars(thing) if isinstance(thing, keras.Loss) else thing
            for value in inner.values() if isinstance(inner, dict) else inner:
                collect(value)

    for loss in losses:
        collect(loss)
    untrained = [variable.path for variable in variables.values() if not variable.trainable]
    if untrained:  # its value would differ between workers
        raise UserError(
            f"a loss in {file} whose variables are all trainable",
            f"{untrained[0]}, which is not: it would differ between workers",
            "Make it trainable, or a constant.",
        )
    return list(variables.values())
