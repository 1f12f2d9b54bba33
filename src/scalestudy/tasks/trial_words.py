"""What is likely wrong about a task although it computes: losses and metrics that do not fit the outputs."""

import difflib
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import keras
import numpy as np

from scalestudy.data.columns import Column
from scalestudy.data.store.prepared import Prepared
from scalestudy.tasks.base import Task
from scalestudy.tasks.outputs import by_name
from scalestudy.util.errors import UserError

OPTIONAL = (
    "better", "callbacks", "data", "kind", "train", "read", "sequences", "vocabularies", "class_names",
    "loss_weights", "training_losses", "gradients",
)  # fmt: skip
"""Names of a task file that it may leave out, so that nobody misses one that is misspelt."""


class Seen(NamedTuple):
    """One loss with what it compares.

    Attributes:
        loss: As the file gives it: a name, or a loss.
        outputs: Values, shape [2, ...].
        layer: The layer that they come from; None where nobody knows.
        targets: What is known of the targets; None of data that the task does not read itself.
    """

    loss: Any
    outputs: Any
    layer: Any
    targets: Column | None


def look_over(module: ModuleType, task: Task, prepared: Prepared, outputs: Any) -> list[str]:
    """Notes on what is likely wrong; refuses what is certainly wrong.

    Args:
        module: The task file, imported.
        task: What it defines.
        prepared: Its data.
        outputs: Of the model, for two samples.

    Raises:
        UserError: Softmax of one unit, or labels that the outputs have no unit for or the loss does not take.
    """
    notes = list(_misspelt(module))
    for seen in _losses(module, task, prepared, outputs):
        _refuse_softmax_of_one(seen)
        kind, logits = _crossentropy(seen.loss)
        if kind is None:
            continue
        _refuse_labels(seen, kind, prepared)
        values, activation = np.asarray(seen.outputs), _activation(seen.layer)
        if not logits and (values.min() < -1e-3 or values.max() > 1.001):
            notes.append(
                f"Note: the outputs are no probabilities ({values.min():.3g} to {values.max():.3g}), which "
                f"{kind} takes them for: give from_logits=True, or end the model with a softmax or sigmoid."
            )
        elif logits and activation in ("softmax", "sigmoid"):
            notes.append(
                f"Note: the model ends with {activation}, and {kind} has from_logits=True, which does not "
                "fit: leave one of them out."
            )
    _refuse_accuracy_of_one(task, outputs)
    return notes


def _losses(module: ModuleType, task: Task, prepared: Prepared, outputs: Any) -> Iterator[Seen]:
    given = getattr(module, "loss", None)
    if isinstance(given, Mapping):
        named, layers = by_name(task.outputs, outputs), by_name(task.outputs, task.model.output)
        columns = prepared.columns[1] if prepared.columns else {}
        for name, loss in given.items():
            column = columns.get(name) if isinstance(columns, dict) else None
            yield Seen(loss, named[name], _layer(layers[name]), column)
    elif not isinstance(outputs, list | tuple | Mapping):
        alone = prepared.columns[1] if prepared.columns else None
        output = getattr(task.model, "output", None) if task.model.built else None
        yield Seen(given, outputs, _layer(output), alone if isinstance(alone, Column) else None)


def _layer(output: Any) -> Any:
    history = getattr(output, "_keras_history", None)
    return None if history is None else history.operation


def _activation(layer: Any) -> str:
    return getattr(getattr(layer, "activation", None), "__name__", "")


def _crossentropy(loss: Any) -> tuple[str | None, bool]:
    """Name of one of Keras's cross-entropies, None for any other loss; and whether it takes logits."""
    if isinstance(loss, str):
        try:
            loss = keras.losses.get(loss)
        except ValueError:
            return None, False
    name = getattr(loss, "__name__", type(loss).__name__)
    if "crossentropy" not in name.lower() or getattr(keras.losses, name, None) is None:
        return None, False
    config = loss.get_config() if isinstance(loss, keras.Loss) else {}
    return name, bool(config.get("from_logits", False))


def _refuse_softmax_of_one(seen: Seen) -> None:
    if _activation(seen.layer) == "softmax" and seen.outputs.shape[-1] == 1:
        raise UserError(
            "a softmax over at least two units",
            f"one unit in the layer {seen.layer.name}, of which the softmax is always 1",
            'Give it one unit a class, or activation="sigmoid" with binary_crossentropy.',
        )


def _refuse_labels(seen: Seen, kind: str, prepared: Prepared) -> None:
    units = int(seen.outputs.shape[-1])
    if seen.targets is None and prepared.columns is None:
        classes = prepared.classes
    else:
        classes = seen.targets.classes if seen.targets is not None else 0
    flat = kind.lower().replace("_", "")
    if flat.startswith("sparsecategorical") and classes > units:
        raise UserError(
            f"an output unit for each of the {classes} classes (labels 0 to {classes - 1})",
            f"{units} units",
            "Give the last layer one unit a class: data.classes.",
        )
    highest = classes - 1 if seen.targets is None else seen.targets.highest
    lowest = 0 if seen.targets is None else seen.targets.lowest
    if flat.startswith("binary") and (highest > 1 or lowest < 0):
        raise UserError(
            f"targets from 0 to 1 for {kind}",
            f"targets from {lowest:g} to {highest:g}",
            "Take sparse_categorical_crossentropy with a unit for each class, or a loss for numbers.",
        )


def _refuse_accuracy_of_one(task: Task, outputs: Any) -> None:
    for name, metric in task.metrics.items():
        looked = by_name(task.outputs, outputs)
        seen = looked[task.looks_at[name]] if name in task.looks_at else looked
        one = not isinstance(seen, Mapping | list) and len(seen.shape) > 1 and seen.shape[-1] == 1
        if type(metric) is keras.metrics.SparseCategoricalAccuracy and one:
            raise UserError(
                f"outputs of several classes for the metric {name!r}",
                "one unit, of which the likeliest is always class 0",
                "Take keras.metrics.BinaryAccuracy().",
            )


def _misspelt(module: ModuleType) -> Iterator[str]:
    """Names of the file that are nearly those that it may define."""
    for name in vars(module):
        if name.startswith("_") or name in OPTIONAL:
            continue
        near = difflib.get_close_matches(
            name, [each for each in OPTIONAL if not hasattr(module, each)], 1, 0.88
        )
        if near:
            yield f"Note: {name} in {module.__file__} is not used; did you mean {near[0]}?"
