"""What is likely wrong about a task although it computes: losses and metrics that do not fit the outputs."""

import difflib
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import keras
import numpy as np

from scalestudy.data.columns import Column
from scalestudy.data.store.prepared import Prepared
from scalestudy.tasks.base import Task, by_name
from scalestudy.util.errors import UserError

OPTIONAL = (
    "better", "callbacks", "data", "kind", "train", "read", "sequences", "vocabularies", "class_names",
    "loss_weights", "training_losses", "gradients",
)  # fmt: skip
"""Names of a task file that it may leave out, so that nobody misses one that is misspelt."""


def notes_on(module: ModuleType, task: Task, prepared: Prepared, outputs: Any) -> list[str]:
    """Notes on what is likely wrong; refuses what is certainly wrong.

    Args:
        module: The task file, imported.
        task: What it defines.
        prepared: Its data.
        outputs: Of the model, for two samples.

    Raises:
        UserError: Softmax of one unit, or labels that the outputs have no unit for or the loss does not take.
    """
    notes = _misspelt(module)
    for given, values, layer, column in _losses(module, task, prepared, outputs):
        activation = getattr(getattr(layer, "activation", None), "__name__", "")
        if activation == "softmax" and values.shape[-1] == 1:
            raise UserError(
                "a softmax over at least two units",
                f"one unit in the layer {layer.name}, of which the softmax is always 1",
                'Give it one unit a class, or activation="sigmoid" with binary_crossentropy.',
            )
        kind, logits = _crossentropy(given)
        if kind is None:
            continue
        _refuse_labels(kind, int(values.shape[-1]), _labels(column, prepared))
        low, high = float(np.min(values)), float(np.max(values))
        if not logits and (low < -1e-3 or high > 1.001):
            notes.append(
                f"Note: the outputs are no probabilities ({low:.3g} to {high:.3g}), which {kind} takes them "
                "for: give from_logits=True, or end the model with a softmax or sigmoid."
            )
        elif logits and activation in ("softmax", "sigmoid"):
            notes.append(
                f"Note: the model ends with {activation}, and {kind} has from_logits=True, which does not "
                "fit: leave one of them out."
            )
    _refuse_accuracy_of_one(task, outputs)
    return notes


def _misspelt(module: ModuleType) -> list[str]:
    """Notes on names of the file that are nearly those that it may define."""
    absent = [name for name in OPTIONAL if not hasattr(module, name)]
    names = [name for name in vars(module) if not name.startswith("_") and name not in OPTIONAL]
    return [
        f"Note: {name} in {module.__file__} is not used; did you mean {near[0]}?"
        for name in names
        if (near := difflib.get_close_matches(name, absent, 1, 0.88))
    ]


def _losses(
    module: ModuleType, task: Task, prepared: Prepared, outputs: Any
) -> Iterator[tuple[Any, Any, Any, Column | None]]:
    """Each loss as the file gives it, the outputs that it is of, their layer, and its targets."""
    given = getattr(module, "loss", None)
    targets = prepared.columns[1] if prepared.columns else None
    if isinstance(given, Mapping):
        named, symbols = by_name(task.outputs, outputs), by_name(task.outputs, task.model.output)
        for name, loss in given.items():
            column = targets.get(name) if isinstance(targets, dict) else None
            yield loss, named[name], _layer(symbols[name]), column
    elif not isinstance(outputs, list | tuple | Mapping):
        output = getattr(task.model, "output", None) if task.model.built else None
        yield given, outputs, _layer(output), targets if isinstance(targets, Column) else None


def _layer(output: Any) -> Any:
    history = getattr(output, "_keras_history", None)
    return None if history is None else history.operation


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


def _labels(column: Column | None, prepared: Prepared) -> tuple[int, float, float]:
    """Number of classes (0 for none), lowest and highest target."""
    if column is not None:
        return column.classes, column.lowest, column.highest
    classes = prepared.classes if prepared.columns is None else 0
    return classes, 0, classes - 1


def _refuse_labels(kind: str, units: int, labels: tuple[int, float, float]) -> None:
    classes, lowest, highest = labels
    flat = kind.lower().replace("_", "")
    if flat.startswith("sparsecategorical") and classes > units:
        raise UserError(
            f"an output unit for each of the {classes} classes (labels 0 to {classes - 1})",
            f"{units} units",
            "Give the last layer one unit a class: data.classes.",
        )
    if flat.startswith("binary") and (highest > 1 or lowest < 0):
        raise UserError(
            f"targets from 0 to 1 for {kind}",
            f"targets from {lowest:g} to {highest:g}",
            "Take sparse_categorical_crossentropy with a unit for each class, or a loss for numbers.",
        )


def _refuse_accuracy_of_one(task: Task, outputs: Any) -> None:
    named = by_name(task.outputs, outputs)
    for name, metric in task.metrics.items():
        values = named[task.looks_at[name]] if name in task.looks_at else named
        single = not isinstance(values, Mapping | list) and len(values.shape) > 1 and values.shape[-1] == 1
        if type(metric) is keras.metrics.SparseCategoricalAccuracy and single:
            raise UserError(
                f"outputs of several classes for the metric {name!r}",
                "one unit, of which the likeliest is always class 0",
                "Take keras.metrics.BinaryAccuracy().",
            )
