"""A task: a model, a loss for each sample, and additive metrics."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import keras

from scalestudy.config.metric_senses import Sense
from scalestudy.data.samples import Column, Described, map_columns
from scalestudy.data.store.prepared import Prepared
from scalestudy.store.model_record import ModelRecord


@dataclass(frozen=True)
class DataInfo:
    """What a task receives: the description of the data set, and the class weights of the study.

    Attributes:
        kind: "masks" (a class for each pixel), "classes" (a class for each sample), or "custom" (read by the
            task).
        input_shape: Height, width and channels; the shape of a custom input, () for several inputs.
        classes: Number of classes; 2 for binary masks, 0 for custom targets without classes.
        ignore: Label of pixels that losses and metrics ignore, or None.
        class_names: Names in the order of the class indices; empty if unknown.
        class_weights: Factor of the losses of each class; None for 1.
        inputs: Shape, type, range and vocabulary of the input; a dictionary by name for several inputs.
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
    def of(
        cls,
        prepared: Prepared,
        class_weights: tuple[float, ...] | None = None,
    ) -> "DataInfo":
        """Describe a prepared data set, with the class weights of the study."""
        columns = prepared.columns
        if columns is None:
            columns = of_images(prepared.kind, prepared.input_shape, prepared.classes)
        return cls(
            prepared.kind,
            prepared.input_shape,
            prepared.classes,
            prepared.ignore,
            prepared.class_names,
            class_weights,
            *columns,
        )

    @classmethod
    def of_record(cls, record: ModelRecord) -> "DataInfo":
        """Describe the images of a saved model."""
        height, width, channels = record.input_shape
        shape = height, width, channels
        return cls(
            record.kind,
            shape,
            record.classes,
            record.ignore,
            tuple(record.class_names),
            record.class_weights,
            *of_images(record.kind, shape, record.classes),
        )


def of_images(
    kind: str,
    input_shape: tuple[int, int, int],
    classes: int,
) -> tuple[Column, Column]:
    """Return the input and the target of an image data set."""
    # As models receive them, however they are stored.
    images = Column(input_shape, "float32", 0.0, 1.0)
    highest = classes - 1.0
    if kind == "masks":
        return images, Column(input_shape[:2], "uint8", 0.0, highest)
    return images, Column((), "int32", 0.0, highest)


@dataclass(frozen=True)
class Task:
    """Model, loss and metrics of a study.

    Attributes:
        model: Built Keras model, or a PyTorch module with the same interface (`tasks.module`). Its inputs
            are [B, H, W, C], scaled to [0, 1].
        loss: (targets, outputs) -> losses of shape [B], one per sample.
        metrics: Metrics by name; the first is the quality. The variables of each metric must be sums over
            samples, so that the workers' parts can be combined exactly.
        senses: For each metric, the better direction (required for the quality) and whether it is in [0, 1].
        callbacks: Keras callbacks, called on rank 0.
        definitions: Classes and functions of the task file by name; Keras needs them to load the model.
        pretrained: Names of the pretrained layers, which a study may freeze for its first epochs.
        class_names: Names of the classes, for metrics with a value for each class.
        training_losses: (model, loss, inputs, targets) -> losses of shape [B]. If given, it replaces the
            forward pass and `loss` in training.
        optimizer: (model, rate) -> an optimizer of PyTorch, which replaces the study's.
        scheduler: (optimizer, steps, epochs) -> its scheduler of PyTorch, stepped after each step.
        sees: Function that converts the outputs for a metric, by the name of the metric. Other metrics
            receive the outputs themselves.
    """

    model: keras.Model
    loss: Callable[[Any, Any], Any]
    metrics: dict[str, keras.Metric]
    senses: dict[str, Sense]
    callbacks: list[keras.callbacks.Callback] = field(default_factory=list)
    definitions: dict[str, Any] = field(default_factory=dict)
    pretrained: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    training_losses: Callable[[Any, Any, Any, Any], Any] | None = None
    optimizer: Callable[[Any, float], Any] | None = None
    scheduler: Callable[[Any, int, int], Any] | None = None
    sees: dict[str, Callable[[Any], Any]] = field(default_factory=dict)

    @property
    def sense(self) -> Sense:
        """Direction and range of the quality."""
        # The first metric is the quality.
        return self.senses[next(iter(self.metrics))]

    @property
    def trained(self) -> list[keras.Variable]:
        """All trained variables."""
        return list(self.model.trainable_variables)

    def seen_by(
        self,
        metric: str,
        targets: Any,
        outputs: Any,
    ) -> tuple[Any, Any]:
        """Return the targets and outputs that a metric is computed from."""
        if metric not in self.sees:
            return targets, outputs
        return targets, self.sees[metric](outputs)


def output_dtype() -> str | None:
    """Return the type of a network's last layer: at least float32, even with mixed precision."""
    if keras.config.floatx() == "float64":
        return None
    # In 16 bits, a softmax and its loss are numerically unstable (Keras's guide to mixed precision).
    return "float32"


def is_module(model: Any) -> bool:
    """Whether `model` is an nn.Module but not a Keras layer, which on the torch backend is one too."""
    if keras.backend.backend() != "torch":
        return False
    # Only on this backend, since a task of Keras needs no PyTorch.
    import torch

    if isinstance(model, keras.layers.Layer):
        return False
    return isinstance(model, torch.nn.Module)


def symbolic_outputs(model: keras.Model, inputs: Described) -> Any:
    """Return the model's outputs for these inputs as symbolic tensors, without computing them."""

    def symbol(column: Column) -> keras.KerasTensor:
        return keras.KerasTensor((None, *column.shape), column.dtype)

    try:
        return model.output
    except AttributeError:  # a subclassed model
        return model.compute_output_spec(map_columns(symbol, inputs))
