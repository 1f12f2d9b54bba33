"""What a task is: a model, a loss for each sample, and additive metrics."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import keras

from scalestudy.study.metrics import Sense


@dataclass(frozen=True)
class DataInfo:
    """What a task may know of its data.

    Attributes:
        kind: "masks" (a class for every pixel) or "classes" (a class for every sample).
        input_shape: Height, width and channels.
        classes: Number of classes; 2 for a binary mask.
        ignore: Label of pixels that count in no loss or metric, or None.
        class_names: In the order of their indices; empty where they are not known.
        class_weights: What multiplies the losses of each class's labels, one a class; None for 1.
    """

    kind: str
    input_shape: tuple[int, int, int]
    classes: int
    ignore: int | None = None
    class_names: tuple[str, ...] = ()
    class_weights: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Task:
    """What is trained.

    Attributes:
        model: The Keras model, built; inputs [B, H, W, C] scaled to [0, 1].
        loss: (targets, outputs) -> losses of shape [B], one a sample.
        metrics: Metrics by name, the first being the quality. Each must add up over samples (its
            variables are sums), so that workers' shares can be combined exactly.
        senses: What the metrics mean: which way is better (known of the quality), and whether in [0, 1].
        callbacks: Keras callbacks, called on rank 0.
        definitions: Classes and functions of the task's file, by name: with them Keras loads the model.
        pretrained: Names of the layers whose weights were trained before, which a study may freeze first.
        class_names: Of the classes, for metrics that have a value for each.
    """

    model: keras.Model
    loss: Callable[[Any, Any], Any]
    metrics: dict[str, keras.Metric]
    senses: dict[str, Sense]
    callbacks: list[keras.callbacks.Callback] = field(default_factory=list)
    definitions: dict[str, Any] = field(default_factory=dict)
    pretrained: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()

    @property
    def sense(self) -> Sense:
        """What the quality means."""
        return self.senses[next(iter(self.metrics))]


def mean_over_rest(losses: Any) -> Any:
    """Mean of `losses` (shape [B, ...]) over all axes but the first: shape [B]."""
    rest = tuple(range(1, len(losses.shape)))
    return keras.ops.mean(losses, axis=rest) if rest else losses
