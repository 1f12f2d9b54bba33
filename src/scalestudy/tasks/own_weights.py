"""Weights that a loss has of its own: trained with the model's."""

from collections.abc import Iterable
from typing import Any

import keras

from scalestudy.tasks.base import DataInfo
from scalestudy.tasks.outputs import symbolic, symbolic_outputs
from scalestudy.util.errors import UserError


def build_loss(loss: Any, model: keras.Model, data: DataInfo) -> None:
    """Have a layer that is a loss make its weights, where it has not yet: before any step is compiled."""
    if not isinstance(loss, keras.layers.Layer) or loss.built or not (data.inputs and data.targets):
        return
    try:
        outputs = symbolic_outputs(model, data.inputs)
    except Exception:  # of a class of the user's own: the trial finds the line that is at fault
        return
    as_given = keras.tree.map_structure(lambda one: keras.KerasTensor(one.shape, one.dtype), outputs)
    loss(symbolic(data.targets), as_given)


def weights_of(losses: Iterable[Any], file: Any) -> list[keras.Variable]:
    """The variables of losses that are layers, or that hold variables and layers; in their order, each once.

    Raises:
        UserError: If one is not trained: every worker would keep one of its own.
    """
    found: dict[int, keras.Variable] = {}
    for loss in losses:
        for variable in _inside(loss, set()):
            found[id(variable)] = variable
    untrained = [variable.path for variable in found.values() if not variable.trainable]
    if untrained:
        raise UserError(
            f"a loss in {file} whose variables are all trained",
            f"{untrained[0]}, which is not: each worker would have another",
            "Make it trainable, or a constant.",
        )
    return list(found.values())


def _inside(thing: Any, seen: set[int]) -> Iterable[keras.Variable]:
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, keras.Variable):
        yield thing
    elif isinstance(thing, keras.layers.Layer):
        yield from thing.variables
    elif isinstance(thing, keras.Loss):
        yield from _inside(vars(thing), seen)
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from _inside(value, seen)
    elif isinstance(thing, list | tuple):
        for value in thing:
            yield from _inside(value, seen)
