"""Metrics of a class's labels: true ones, predicted ones, and those that are both, summed over a whole set.

Of two classes a metric is that of the second, the foreground; of more, the mean over classes. A class that
occurs neither in truth nor in predictions has no value and is left out of the mean; where no class has one,
the metric is 1: nothing was to be found, and nothing was.
"""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.tasks.pixels import as_array, is_of, likeliest, split_ignored, total


class Overlap(keras.Metric):
    """The sums; see `Counts` for what a metric makes of them.

    Args:
        classes: Number of classes; 2 means one output channel (sigmoid) or two.
        ignore: Label that does not count, or None.
        name: Name of the metric.
    """

    better, bounded = "higher", True

    def __init__(self, classes: int = 2, ignore: int | None = None, name: str | None = None) -> None:
        # float64: float32 stops counting at 2^24 pixels, which 22 images of 768x1024 exceed.
        super().__init__(name=name or type(self).__name__.lower(), dtype="float64")
        self.classes, self.ignore = classes, ignore
        shape = (1 if classes == 2 else classes,)
        for sums, size in (("intersection", shape), ("true", shape), ("predicted", shape), ("seen", ())):
            setattr(self, sums, self.add_variable(size, "zeros", dtype="float64", name=sums))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch.

        Args:
            y_true: Class of each label, shape [B] or [B, H, W].
            y_pred: Outputs, shape [..., 1] or [..., classes].
            sample_weight: Not supported: every sample counts once.
        """
        ops = keras.ops
        y_true, valid = split_ignored(y_true, self.ignore)
        if self.classes == 2:
            true = ops.expand_dims(ops.equal(ops.cast(y_true, "int64"), 1), -1)
            predicted = (
                ops.greater_equal(y_pred, 0.5)
                if y_pred.shape[-1] == 1
                else ops.expand_dims(ops.equal(likeliest(y_pred), 1), -1)
            )
        else:
            true = is_of(y_true, self.classes)
            predicted = is_of(likeliest(y_pred), self.classes)
        if valid is None:
            seen = ops.cast(np.prod(y_true.shape[1:], dtype="float64"), "float64") * ops.cast(
                ops.shape(y_true)[0], "float64"
            )
        else:
            valid = ops.expand_dims(valid, -1)
            true, predicted = ops.logical_and(true, valid), ops.logical_and(predicted, valid)
            seen = total(valid)[0]
        both = ops.logical_and(true, predicted)
        for variable, labels in ((self.intersection, both), (self.true, true), (self.predicted, predicted)):
            variable.assign(variable + total(labels))
        self.seen.assign(self.seen + seen)

    def counts(self) -> "Counts":
        """The sums so far."""
        both, true, predicted = map(as_array, (self.intersection, self.true, self.predicted))
        return Counts(both, true, predicted, float(as_array(self.seen)))

    def of_classes(self, counts: "Counts") -> NDArray[np.float64]:
        """Value of each class; NaN for those that have none."""
        raise NotImplementedError

    def result(self) -> Any:
        """The metric, a scalar."""
        values = self.of_classes(self.counts())
        return float(np.nanmean(values)) if np.isfinite(values).any() else 1.0

    def parts(self) -> dict[int, float]:
        """Value of each class by its index, as far as it has one; of two classes, of both."""
        values = self.of_classes(self.counts().of_both())
        return {index: float(value) for index, value in enumerate(values) if np.isfinite(value)}

    def reset_state(self) -> None:
        """Forget all samples."""
        for variable in self.variables:
            variable.assign(keras.ops.zeros(variable.shape, dtype="float64"))

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same metric again."""
        return {"classes": self.classes, "ignore": self.ignore, "name": self.name}


class Counts:
    """Labels of each class: `both` true and predicted, `true`, `predicted`; of all classes `seen`."""

    def __init__(
        self,
        both: NDArray[np.float64],
        true: NDArray[np.float64],
        predicted: NDArray[np.float64],
        seen: float,
    ) -> None:
        self.both, self.true, self.predicted, self.seen = both, true, predicted, seen

    def of_both(self) -> "Counts":
        """With the first of two classes, which the sums leave to be concluded."""
        if len(self.both) > 1:
            return self
        neither = self.seen - self.true - self.predicted + self.both
        first = (neither, self.seen - self.true, self.seen - self.predicted)
        sums = (self.both, self.true, self.predicted)
        both, true, predicted = (np.concatenate(pair) for pair in zip(first, sums, strict=True))
        return Counts(both, true, predicted, self.seen)

    @property
    def union(self) -> NDArray[np.float64]:
        """Labels that are true or predicted."""
        return self.true + self.predicted - self.both


def ratio(above: NDArray[np.float64], below: NDArray[np.float64], union: Any) -> NDArray[np.float64]:
    """`above` / `below`, 0 where nothing is below, and NaN of a class that does not occur."""
    safe = np.where(below > 0, below, 1.0)
    return np.where(union > 0, np.where(below > 0, above / safe, 0.0), np.nan)


class Dice(Overlap):
    """2 |A∩B| / (|A| + |B|) of each class's pixels over the whole set (Dice 1945)."""

    def of_classes(self, counts: Counts) -> NDArray[np.float64]:
        """Of each class."""
        return ratio(2 * counts.both, counts.true + counts.predicted, counts.union)


class Averaged(Overlap):
    """Base of precision, recall and F1.

    Args:
        classes: Number of classes.
        ignore: Label that does not count, or None.
        average: "macro", the mean over classes (of two: the second), or "micro", that of all labels together.
        name: Name of the metric.
    """

    def __init__(
        self, classes: int = 2, ignore: int | None = None, average: str = "macro", name: str | None = None
    ) -> None:
        super().__init__(classes, ignore, name)
        self.average = average

    def result(self) -> Any:
        """The metric, a scalar."""
        counts = self.counts()
        if self.average == "macro":
            return super().result()
        # Every label has one true and one predicted class: micro precision, recall and F1 are all accuracy.
        return float(counts.of_both().both.sum() / counts.seen) if counts.seen else 1.0

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same metric again."""
        return super().get_config() | {"average": self.average}


class Precision(Averaged):
    """Share of the labels predicted to be of a class that are; 0 where none is predicted."""

    def of_classes(self, counts: Counts) -> NDArray[np.float64]:
        """Of each class."""
        return ratio(counts.both, counts.predicted, counts.union)


class Recall(Averaged):
    """Share of a class's labels that are predicted; 0 where it is predicted, and there is none."""

    def of_classes(self, counts: Counts) -> NDArray[np.float64]:
        """Of each class."""
        return ratio(counts.both, counts.true, counts.union)


class F1(Averaged):
    """Harmonic mean of a class's precision and recall, 2 TP / (2 TP + FP + FN)."""

    def of_classes(self, counts: Counts) -> NDArray[np.float64]:
        """Of each class."""
        return ratio(2 * counts.both, counts.true + counts.predicted, counts.union)


class BalancedAccuracy(Overlap):
    """Mean over all classes, of two over both, of their recall (Brodersen et al. 2010).

    Classes without a true label are left out.
    """

    def of_classes(self, counts: Counts) -> NDArray[np.float64]:
        """Recall of each class."""
        counts = counts.of_both()
        return ratio(counts.both, counts.true, counts.true)
