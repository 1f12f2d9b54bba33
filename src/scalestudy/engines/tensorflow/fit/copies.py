"""The model that computes: the user's own, or where a process has several devices a copy made for them."""

import random
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from scalestudy.engines.keras.private import all_layers, replaced, take_summed
from scalestudy.engines.tensorflow.strategies.distributed import Distributed
from scalestudy.engines.tensorflow.strategies.replicas import CompiledReplicas
from scalestudy.util.errors import UserError


class Computing:
    """A model and its optimizer as they are computed with.

    Variables that TensorFlow keeps on several devices must be made for them, so there the user's model is
    made again from its configuration; values go to and fro.

    Args:
        model: The user's: compiled and built.
        replicas: The devices of this process.
    """

    def __init__(self, model: keras.Model, replicas: CompiledReplicas) -> None:
        self._model, self._replicas = model, replicas
        self.model, self.optimizer = model, model.optimizer
        self._copied = isinstance(replicas, Distributed)
        if self._copied:
            with replicas.scope():
                self.model, self.optimizer = _again(model)
                take_summed(self.optimizer)
                self.optimizer.build(self.model.trainable_variables)
            self.push()
        self._own = [variable.value for variable in own_variables(self.model)]

    def push(self) -> None:
        """Take the values of the user's model and optimizer."""
        if self._copied:
            _copy(self._all(self._model, self._model.optimizer), self._all(self.model, self.optimizer))

    def pull(self) -> None:
        """Give the user's model and optimizer the values that were computed."""
        if not self._copied:
            return
        for source, target in zip(
            self._all(self.model, self.optimizer), self._all(self._model, self._model.optimizer), strict=True
        ):
            target.assign(self._replicas.copies(source.value)[0])

    def average(self) -> None:
        """Set what each worker keeps for itself to its mean over all of them; every rank must ask."""
        self._replicas.average(self._own)

    def _all(self, model: keras.Model, optimizer: Any) -> list[Any]:
        return [*model.variables, *optimizer.variables]


def own_variables(model: keras.Model) -> list[Any]:
    """Variables that each worker moves by its own rows: moving statistics, and what is like them."""
    layers = all_layers(model)
    frozen = {id(variable) for layer in layers if not layer.trainable for variable in layer.variables}
    return [
        variable
        for variable in model.non_trainable_variables
        if id(variable) not in frozen and variable.dtype in ("float16", "bfloat16", "float32", "float64")
    ]


def _again(model: keras.Model) -> tuple[keras.Model, Any]:
    """The same model and optimizer, made anew.

    Raises:
        UserError: If a model cannot be made from what it says of itself, or its optimizer fails there.
    """
    optimizer = innermost(model.optimizer)
    if optimizer.gradient_accumulation_steps or (optimizer.use_ema and optimizer.ema_overwrite_frequency):
        raise UserError(
            "an optimizer that updates in every step alike, for several devices of one process (mirrored)",
            "gradient_accumulation_steps or ema_overwrite_frequency, on which TensorFlow fails there",
            "Take a strategy of a process each: horovod or multiworker.",
        )
    drawn = random.getstate()  # new layers draw seeds, which the script's own draws must not feel
    try:
        with replaced({model: {"compiled": False}}):
            copy = keras.models.clone_model(model)
        if not copy.built:
            copy.build(model.input_shape)
        _same_trainable(model, copy)
        optimizer = type(model.optimizer).from_config(model.optimizer.get_config())
    except (TypeError, ValueError, NotImplementedError, AttributeError) as error:
        raise UserError(
            "a model that can be made again from its configuration, for a copy on each device (mirrored)",
            f"{type(model).__name__}: {error}",
            "Take a strategy of a process each (horovod, multiworker), or give the model a get_config().",
        ) from error
    finally:
        random.setstate(drawn)
    return copy, optimizer


def _same_trainable(model: keras.Model, copy: keras.Model) -> None:
    if [each.shape for each in copy.variables] != [each.shape for each in model.variables]:
        raise ValueError("its copy has other weights")
    for one, other in zip(all_layers(model), all_layers(copy), strict=True):
        other.trainable = one.trainable


def _copy(sources: Sequence[Any], targets: Sequence[Any]) -> None:
    for source, target in zip(sources, targets, strict=True):
        target.assign(np.asarray(source.value))


def innermost(optimizer: Any) -> Any:
    """The optimizer that has the rate, within one that scales the loss."""
    return getattr(optimizer, "inner_optimizer", optimizer)
