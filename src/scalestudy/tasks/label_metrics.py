"""Metrics of labels: sums over the whole set, divided once, so that the workers' sums add up exactly."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.tasks.label_losses import (
    constant,
    is_of,
    likeliest,
    split_ignored,
    total,
)
from scalestudy.util.registry import Registry

Values = NDArray[np.float64]
NAMED: Registry[Callable[..., keras.Metric]] = Registry(
    "scalestudy.metrics",
    lambda: {
        "iou": IoU,
        "dice": Dice,
        "accuracy": Accuracy,
        "top_k": TopK,
        "precision": Precision,
        "recall": Recall,
        "f1": F1,
    },
)
"""Metrics for classes, by their names in study and task files: (number of classes, ignored value, name=…)."""


class ClassMetric(keras.Metric):
    """Base class of metrics for `classes` classes; labels equal to `ignore` do not count.

    Sums are float64: float32 cannot count beyond 2^24 pixels, which 22 images of 768 x 1024 exceed.
    """

    better = "higher"
    bounded = True

    def __init__(
        self,
        classes: int = 2,
        ignore: int | None = None,
        name: str | None = None,
        **given: Any,
    ) -> None:
        super().__init__(
            name=name or type(self).__name__.lower(),
            dtype="float64",
            **given,
        )
        self.classes = classes
        self.ignore = ignore
        self._make_sums()

    def _make_sums(self) -> None:
        """Create the variables."""
        raise NotImplementedError

    def sums(self, name: str, shape: tuple[int, ...] = ()) -> keras.Variable:
        """Create a variable for sums."""
        return self.add_variable(shape, "zeros", dtype="float64", name=name)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that create the same metric."""
        return {"classes": self.classes, "ignore": self.ignore, "name": self.name}


class Overlap(ClassMetric):
    """Base class: counts of the labels of each class in targets, in predictions, and in both.

    With two classes a metric is the value of the second, the foreground; with more, the mean over classes.
    A class that occurs neither in targets nor in predictions has no value and is left out of the mean. If no
    class has a value, the metric is 1.
    """

    def _make_sums(self) -> None:
        shape = (self.classes,)
        if self.classes == 2:
            shape = (1,)  # the foreground alone
        self.intersection = self.sums("intersection", shape)
        self.true = self.sums("true", shape)
        self.predicted = self.sums("predicted", shape)
        self.seen = self.sums("seen")

    def update_state(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any = None,
    ) -> None:
        """Add a batch: classes [B] or [B, H, W], outputs [..., 1] or [..., classes]; no weights."""
        ops = keras.ops
        y_true, valid = split_ignored(y_true, self.ignore)
        if self.classes == 2:
            true = ops.expand_dims(ops.cast(y_true, "int64") == 1, -1)
            predicted = _predicted_foreground(y_pred)
        else:
            true = is_of(y_true, self.classes)
            predicted = is_of(likeliest(y_pred), self.classes)
        if valid is None:
            seen = _number_of_labels(y_true)
        else:
            valid = ops.expand_dims(valid, -1)
            true = ops.logical_and(true, valid)
            predicted = ops.logical_and(predicted, valid)
            seen = total(valid)[0]
        both = ops.logical_and(true, predicted)
        for variable, labels in (
            (self.intersection, both),
            (self.true, true),
            (self.predicted, predicted),
        ):
            variable.assign(variable + total(labels))
        self.seen.assign(self.seen.value + seen)

    def _of_classes(
        self,
        both: Values,
        true: Values,
        predicted: Values,
    ) -> Values:
        """Return the value of each class; NaN for classes without one."""
        raise NotImplementedError

    def _counts(self) -> tuple[Values, Values, Values]:
        array = keras.ops.convert_to_numpy
        both = array(self.intersection)
        true = array(self.true)
        predicted = array(self.predicted)
        return both, true, predicted

    def result(self) -> Any:
        """Return the metric, a scalar."""
        values = self._of_classes(*self._counts())
        if not np.isfinite(values).any():
            return 1.0
        return float(np.nanmean(values))

    def parts(self) -> dict[int, float]:
        """Return the values of classes by index, of both if there are two, without classes that have none."""
        both, true, predicted = self._counts()
        if self.classes == 2:
            # Only the foreground is counted; the background is all the rest.
            seen = float(keras.ops.convert_to_numpy(self.seen))
            neither = seen - true - predicted + both
            not_true = seen - true
            not_predicted = seen - predicted
            both = np.concatenate([neither, both])
            true = np.concatenate([not_true, true])
            predicted = np.concatenate([not_predicted, predicted])
        parts = {}
        for index, value in enumerate(self._of_classes(both, true, predicted)):
            if np.isfinite(value):
                parts[index] = float(value)
        return parts


def _predicted_foreground(outputs: Any) -> Any:
    """Return where the second of two classes is predicted, shape [..., 1]."""
    if outputs.shape[-1] == 1:
        return outputs >= 0.5
    return keras.ops.expand_dims(likeliest(outputs) == 1, -1)


def _number_of_labels(targets: Any) -> Any:
    rows = keras.ops.shape(targets)[0]
    if not isinstance(rows, int):
        # A tensor, in a graph for batches of any size.
        rows = keras.ops.cast(rows, "float64")
    return np.prod(targets.shape[1:], dtype="float64") * rows


def ratio(above: Values, below: Values, occurring: Values) -> Values:
    """Return `above` / `below`, 0 where `below` is 0, and NaN for classes that do not occur."""
    positive = below > 0
    # Not divided by 0 anywhere: `where` computes both of its values.
    safe = np.where(positive, below, 1.0)
    values = np.where(positive, above / safe, 0.0)
    return np.where(occurring > 0, values, np.nan)


class IoU(Overlap):
    """IoU = (Σyp + 1) / (Σy + Σp − Σyp + 1), with predictions thresholded at 0.5.

    This is the definition of the published U-Net scaling study (Zenodo 10.5281/zenodo.7639190). Because of
    the +1 terms, a class that does not occur has an IoU of 1. With more than two classes, the mean over all.
    """

    def _of_classes(
        self,
        both: Values,
        true: Values,
        predicted: Values,
    ) -> Values:
        union = true + predicted - both
        values = (both + 1.0) / (union + 1.0)
        return np.where(union > 0, values, np.nan)

    def result(self) -> Any:
        """Return the IoU, a scalar."""
        union = self.true + self.predicted - self.intersection
        return keras.ops.mean((self.intersection + 1.0) / (union + 1.0))


class Precision(Overlap):
    """Share of the labels predicted as a class that belong to it; 0 if none is predicted."""

    def _of_classes(
        self,
        both: Values,
        true: Values,
        predicted: Values,
    ) -> Values:
        return ratio(both, predicted, true + predicted - both)


class Recall(Overlap):
    """Share of a class's labels that are predicted; 0 if a class is predicted but does not occur."""

    def _of_classes(
        self,
        both: Values,
        true: Values,
        predicted: Values,
    ) -> Values:
        return ratio(both, true, true + predicted - both)


class F1(Overlap):
    """Harmonic mean of a class's precision and recall, 2 TP / (2 TP + FP + FN)."""

    def _of_classes(
        self,
        both: Values,
        true: Values,
        predicted: Values,
    ) -> Values:
        return ratio(2 * both, true + predicted, true + predicted - both)


class Dice(F1):
    """2 |A∩B| / (|A| + |B|) for the pixels of each class over the whole set (Dice 1945)."""


class Accuracy(ClassMetric):
    """Share of labels whose most probable class is the true one; 0 without labels."""

    def _make_sums(self) -> None:
        self.sum = self.sums("sum")
        self.seen = self.sums("seen")

    def _right(self, true: Any, outputs: Any) -> Any:
        """Return a boolean for each label, of the shape of `true`."""
        return keras.ops.equal(keras.ops.cast(true, "int64"), likeliest(outputs))

    def update_state(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any = None,
    ) -> None:
        """Add a batch; see `Overlap`."""
        ops = keras.ops
        y_true, valid = split_ignored(y_true, self.ignore)
        right = self._right(y_true, y_pred)
        counted = valid
        if valid is None:
            counted = ops.ones_like(right)
        # An axis of one class for `total`, which sums over all axes but the last.
        hits = ops.expand_dims(ops.logical_and(right, counted), -1)
        labels = ops.expand_dims(counted, -1)
        self.sum.assign(self.sum + total(hits)[0])
        self.seen.assign(self.seen + total(labels)[0])

    def result(self) -> Any:
        """Return the share, a scalar."""
        return self.sum / keras.ops.maximum(self.seen, 1.0)


class TopK(Accuracy):
    """Share of labels whose true class is among the `k` most probable classes."""

    def __init__(
        self,
        classes: int = 2,
        ignore: int | None = None,
        name: str | None = None,
        *,
        k: int = 5,
    ) -> None:
        super().__init__(classes, ignore, name)
        self.k = k

    def _right(self, true: Any, outputs: Any) -> Any:
        ops = keras.ops
        values = outputs
        if outputs.shape[-1] == 1:  # the probability of the second of two classes
            values = ops.concatenate([1 - outputs, outputs], axis=-1)
        classes = is_of(true, self.classes)
        of_true = ops.where(classes, values, constant(-np.inf, values))
        highest = ops.max(of_true, axis=-1, keepdims=True)
        above = ops.cast(ops.greater(values, highest), "float32")
        return ops.sum(above, axis=-1) < float(self.k)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that create the same metric."""
        return super().get_config() | {"k": self.k}
