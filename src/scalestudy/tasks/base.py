"""A task: a model, a loss for each sample, and additive metrics."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import keras

from scalestudy.data.columns import Column, Described, map_columns
from scalestudy.data.store.prepared import Prepared
from scalestudy.study.metrics import Sense
from scalestudy.study.model_record import ModelRecord
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class DataInfo:
    """Description of the data set, for a task.

    Attributes:
        kind: "masks" (a class for each pixel), "classes" (a class for each sample), or "custom" (read by the
            task).
        input_shape: Height, width and channels; for a custom input its shape, () if there are several.
        classes: Number of classes; 2 for binary masks, 0 for custom targets without classes.
        ignore: Label of pixels that losses and metrics ignore, or None.
        class_names: Names in the order of the class indices; empty if unknown.
        class_weights: Factor of each class's losses, one for each class; None for 1.
        inputs: Shape, type, range and vocabulary of the input, or of several inputs by name.
        targets: The same for the targets.
    """

    kind: str
    input_shape: tuple[int, int, int]
    classes: int
    ignore: int | None = None
    class_names: tuple[str, ...] = ()
    class_weights: tuple[float, ...] | None = None
    inputs: Described | None = None
    targets: Described | None = None

    @classmethod
    def of(cls, prepared: Prepared, class_weights: tuple[float, ...] | None = None) -> "DataInfo":
        """Description of a prepared data set, with the class weights of the study."""
        return cls(
            prepared.kind, prepared.input_shape, prepared.classes, prepared.ignore, prepared.class_names,
            class_weights,
            *(prepared.columns or of_images(prepared.kind, prepared.input_shape, prepared.classes)),
        )  # fmt: skip

    @classmethod
    def of_record(cls, record: ModelRecord) -> "DataInfo":
        """Description of the images of a saved model."""
        height, width, channels = record.input_shape
        shape = height, width, channels
        return cls(
            record.kind, shape, record.classes, record.ignore, tuple(record.class_names),
            record.class_weights, *of_images(record.kind, shape, record.classes),
        )  # fmt: skip

    def of_output(self, name: str) -> "DataInfo":
        """The same for one output: its target and number of classes."""
        if not isinstance(self.targets, Mapping) or name not in self.targets:
            return self
        return replace(self, targets=self.targets[name], classes=self.targets[name].classes)


def of_images(kind: str, input_shape: tuple[int, int, int], classes: int) -> tuple[Column, Column]:
    """Input and target of a set of images."""
    shape, dtype = (input_shape[:2], "uint8") if kind == "masks" else ((), "int32")
    return Column(input_shape, "float32", 0.0, 1.0), Column(shape, dtype, 0.0, classes - 1.0)


@dataclass(frozen=True)
class Task:
    """Model, loss and metrics of a study.

    Attributes:
        model: Built Keras model, or a PyTorch module wrapped like one (`tasks.module`); inputs [B, H, W, C]
            scaled to [0, 1].
        loss: (targets, outputs) -> losses of shape [B], one per sample.
        metrics: Metrics by name, the first being the quality. Each must add up over samples (its
            variables are sums), so that the workers' parts can be combined exactly.
        senses: For each metric, which direction is better (known for the quality) and whether it is in [0,
            1].
        callbacks: Keras callbacks, called on rank 0.
        definitions: Classes and functions of the task file by name, with which Keras loads the model.
        pretrained: Names of the pretrained layers, which a study may freeze at first.
        class_names: Names of the classes, for metrics with a value for each class.
        outputs: Names of the model's outputs, if there are several.
        looks_at: Output that a metric uses, by the name of the metric; other metrics use all.
        weights: Variables of the loss that are trained with the model.
        training_losses: (model, loss, inputs, targets) -> losses of shape [B]; replaces the forward pass and
            `loss` while training. None for these.
        gradients: (gradients, variables) -> gradients; applied to the sum over all workers, before the
            update.
        sees: Function from outputs to the input of a metric, by its name, if that is not the outputs.
    """

    model: keras.Model
    loss: Callable[[Any, Any], Any]
    metrics: dict[str, keras.Metric]
    senses: dict[str, Sense]
    callbacks: list[keras.callbacks.Callback] = field(default_factory=list)
    definitions: dict[str, Any] = field(default_factory=dict)
    pretrained: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    outputs: list[str] = field(default_factory=list)
    looks_at: dict[str, str] = field(default_factory=dict)
    weights: list[keras.Variable] = field(default_factory=list)
    training_losses: Callable[[Any, Any, Any, Any], Any] | None = None
    gradients: Callable[[list[Any], list[Any]], list[Any]] | None = None
    sees: dict[str, Callable[[Any], Any]] = field(default_factory=dict)

    @property
    def sense(self) -> Sense:
        """Direction and range of the quality."""
        return self.senses[next(iter(self.metrics))]

    @property
    def trained(self) -> list[keras.Variable]:
        """All variables that gradients are taken of: the model's, then those of the loss."""
        return [*self.model.trainable_variables, *self.weights]

    def seen_by(self, metric: str, targets: Any, outputs: Any) -> tuple[Any, Any]:
        """The targets and outputs that a metric is of."""
        output = self.looks_at.get(metric)
        if output is not None:
            targets, outputs = targets[output], by_name(self.outputs, outputs)[output]
        return targets, self.sees[metric](outputs) if metric in self.sees else outputs


def names_of(model: keras.Model) -> list[str]:
    """Names of a model's outputs; [] where it has one that stands by itself, or where nobody knows."""
    try:
        outputs = model.output
    except AttributeError:  # a class of the user's own, that has not been called yet
        return []
    if isinstance(outputs, Mapping):
        return list(outputs)
    return list(model.output_names) if isinstance(outputs, list | tuple) and len(outputs) > 1 else []


def by_name(names: Iterable[str], outputs: Any) -> Any:
    """Outputs as a dictionary, where a model gives several in a list."""
    return dict(zip(names, outputs, strict=True)) if isinstance(outputs, list | tuple) else outputs


def symbolic(columns: Described) -> Any:
    """A batch of such inputs or targets, before there is one."""
    return map_columns(lambda column: keras.KerasTensor((None, *column.shape), column.dtype), columns)


def symbolic_outputs(model: keras.Model, inputs: Described) -> Any:
    """A model's outputs for such inputs, before any is computed; only functional models tell them."""
    try:
        return model.output
    except AttributeError:
        return model.compute_output_spec(symbolic(inputs))


def refuse_unknown(given: Iterable[str], names: Iterable[str], what: str, file: Any) -> None:
    """Refuse names of `what` that are not among `names`, with what is near.

    Raises:
        UserError: If there is one.
    """
    known = list(names)
    wrong = next((name for name in given if name not in known), None)
    if wrong is not None:
        near = difflib.get_close_matches(wrong, known, n=1)
        raise UserError(
            f"names of {what} in {file}: {', '.join(known) or 'none, since there is only one'}",
            repr(wrong),
            f"Did you mean {near[0]!r}?" if near else "Correct it, or the output's name in model(data).",
        )
