"""Metrics that are a sum over labels divided by how many there are."""

from typing import Any

import keras
import numpy as np

from scalestudy.tasks.pixels import is_of, likeliest, probabilities, split_ignored, total


class OverLabels(keras.Metric):
    """Base: a number for each label, averaged; 0 where there is no label.

    Args:
        classes: Number of classes.
        ignore: Label that does not count, or None.
        name: Name of the metric.
    """

    better, bounded = "higher", True

    def __init__(self, classes: int = 2, ignore: int | None = None, name: str | None = None) -> None:
        super().__init__(name=name or type(self).__name__.lower(), dtype="float64")
        self.classes, self.ignore = classes, ignore
        self.sum = self.add_variable((), "zeros", dtype="float64", name="sum")
        self.seen = self.add_variable((), "zeros", dtype="float64", name="seen")

    def of_labels(self, true: Any, outputs: Any) -> Any:
        """Truth or number of each label, shape as `true`."""
        raise NotImplementedError

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch; see `Overlap`."""
        ops = keras.ops
        y_true, valid = split_ignored(y_true, self.ignore)
        each = self.of_labels(y_true, y_pred)
        counted = ops.ones_like(each, dtype="bool") if valid is None else valid
        if keras.backend.standardize_dtype(each.dtype) == "bool":
            added = total(ops.expand_dims(ops.logical_and(each, counted), -1))[0]
        else:
            added = ops.sum(ops.where(counted, ops.cast(each, "float64"), 0.0))
        self.sum.assign(self.sum + added)
        self.seen.assign(self.seen + total(ops.expand_dims(counted, -1))[0])

    def result(self) -> Any:
        """The mean, a scalar."""
        return self.sum / keras.ops.maximum(self.seen, 1.0)

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same metric again."""
        return {"classes": self.classes, "ignore": self.ignore, "name": self.name}


class Accuracy(OverLabels):
    """Share of labels whose most probable class is the true one."""

    def of_labels(self, true: Any, outputs: Any) -> Any:
        """Whether it is right."""
        return keras.ops.equal(keras.ops.cast(true, "int64"), likeliest(outputs))


class TopK(OverLabels):
    """Share of labels whose true class is among the k most probable.

    Ties count for the label: it is among them if fewer than k classes are more probable.

    Args:
        classes: Number of classes.
        ignore: Label that does not count, or None.
        k: How many.
        name: Name of the metric.
    """

    def __init__(
        self, classes: int = 2, ignore: int | None = None, k: int = 5, name: str | None = None
    ) -> None:
        super().__init__(classes, ignore, name)
        self.k = k

    def of_labels(self, true: Any, outputs: Any) -> Any:
        """Whether it is among them."""
        ops = keras.ops
        each = probabilities(outputs)
        own = ops.where(is_of(true, self.classes), each, ops.full_like(each, -np.inf))
        above = ops.cast(ops.greater(each, ops.max(own, axis=-1, keepdims=True)), "float32")
        return ops.less(ops.sum(above, axis=-1), float(self.k))

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same metric again."""
        return super().get_config() | {"k": self.k}


class Brier(OverLabels):
    """½ Σ_c (p_c − y_c)², averaged over labels; of two classes (p − y)² (Brier 1950, halved)."""

    better = "lower"

    def of_labels(self, true: Any, outputs: Any) -> Any:
        """Half the squared distance."""
        ops = keras.ops
        each = ops.cast(probabilities(outputs), "float32")
        distance = ops.square(each - ops.cast(is_of(true, self.classes), "float32"))
        return ops.sum(distance, axis=-1) / 2
