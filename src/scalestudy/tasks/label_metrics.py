"""Metrics of labels: sums over the whole set, divided once, so that the workers' sums add up exactly."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.tasks.label_losses import flat, is_of, likeliest, probabilities, split_ignored, total
from scalestudy.util.registry import Registry

Values = NDArray[np.float64]


class ClassMetric(keras.Metric):
    """Base class of metrics for `classes` classes; labels equal to `ignore` do not count.

    Sums are float64: float32 cannot count beyond 2^24 pixels, which 22 images of 768 x 1024 exceed.
    """

    better, bounded = "higher", True
    label = ""
    """Default name; if empty, the name of the class in lower case."""
    options: Mapping[str, Any] = MappingProxyType({})
    """Further arguments with their defaults; each becomes an attribute."""

    def __init__(
        self, classes: int = 2, ignore: int | None = None, name: str | None = None, **given: Any
    ) -> None:
        values = {option: given.pop(option, default) for option, default in self.options.items()}
        super().__init__(name=name or self.label or type(self).__name__.lower(), dtype="float64", **given)
        self.classes, self.ignore = classes, ignore
        for option, value in values.items():
            setattr(self, option, value)
        self._make_sums()

    def _make_sums(self) -> None:
        """Create the variables. The arguments are already attributes."""
        raise NotImplementedError

    def sums(self, name: str, shape: tuple[int, ...] = ()) -> keras.Variable:
        """Create a variable for sums."""
        return self.add_variable(shape, "zeros", dtype="float64", name=name)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that create the same metric."""
        return {key: getattr(self, key) for key in ("classes", "ignore", "name", *self.options)}


def as_array(variable: Any) -> Any:
    """Return the value of a variable as a NumPy array."""
    return np.asarray(keras.ops.convert_to_tensor(variable))


def mean_of(values: Values, nothing: float) -> float:
    """Return the mean over classes with a value; `nothing` if there is none."""
    return float(np.nanmean(values)) if np.isfinite(values).any() else nothing


def by_index(values: Values) -> dict[int, float]:
    """Return values by class index, without NaN."""
    return {index: float(value) for index, value in enumerate(values) if np.isfinite(value)}


class Overlap(ClassMetric):
    """Base class: counts of the labels of each class in targets, in predictions, and in both.

    With two classes a metric is the value of the second, the foreground; with more, the mean over classes.
    A class that occurs neither in targets nor in predictions has no value and is left out of the mean. If no
    class has a value, the metric is 1.
    """

    of_background = False
    """Whether the first of two classes is averaged too."""

    def _make_sums(self) -> None:
        shape = (1 if self.classes == 2 else self.classes,)
        self.intersection, self.true = self.sums("intersection", shape), self.sums("true", shape)
        self.predicted, self.seen = self.sums("predicted", shape), self.sums("seen")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch: classes [B] or [B, H, W], outputs [..., 1] or [..., classes]; no weights."""
        ops = keras.ops
        y_true, valid = split_ignored(y_true, self.ignore)
        if self.classes == 2:
            true = ops.expand_dims(ops.equal(ops.cast(y_true, "int64"), 1), -1)
            single = y_pred.shape[-1] == 1
            predicted = y_pred >= 0.5 if single else ops.expand_dims(ops.equal(likeliest(y_pred), 1), -1)
        else:
            true, predicted = is_of(y_true, self.classes), is_of(likeliest(y_pred), self.classes)
        if valid is None:
            of_sample = np.prod(y_true.shape[1:], dtype="float64")
            seen = ops.cast(of_sample, "float64") * ops.cast(ops.shape(y_true)[0], "float64")
        else:
            valid = ops.expand_dims(valid, -1)
            true, predicted = ops.logical_and(true, valid), ops.logical_and(predicted, valid)
            seen = total(valid)[0]
        both = ops.logical_and(true, predicted)
        for variable, labels in ((self.intersection, both), (self.true, true), (self.predicted, predicted)):
            variable.assign(variable + total(labels))
        self.seen.assign(self.seen + seen)

    def counts(self, *, background: bool) -> tuple[Values, Values, Values]:
        """Return counts by class in both, targets and predictions; of two, the first only on `background`."""
        sums = tuple(map(as_array, (self.intersection, self.true, self.predicted)))
        if self.classes > 2 or not background:
            return sums
        (both, true, predicted), seen = sums, float(as_array(self.seen))
        first = (seen - true - predicted + both, seen - true, seen - predicted)
        return tuple(np.concatenate(pair) for pair in zip(first, sums, strict=True))  # type: ignore[return-value]

    def _of_classes(self, both: Values, true: Values, predicted: Values) -> Values:
        """Return the value of each class; NaN for classes without one."""
        raise NotImplementedError

    def result(self) -> Any:
        """Return the metric, a scalar."""
        return mean_of(self._of_classes(*self.counts(background=self.of_background)), 1.0)

    def parts(self) -> dict[int, float]:
        """Return the values of classes by index, of both if there are two, without classes that have none."""
        return by_index(self._of_classes(*self.counts(background=True)))


def ratio(above: Values, below: Values, occurring: Values) -> Values:
    """Return `above` / `below`, 0 where `below` is 0, and NaN for classes that do not occur."""
    safe = np.where(below > 0, below, 1.0)
    return np.where(occurring > 0, np.where(below > 0, above / safe, 0.0), np.nan)


class IoU(Overlap):
    """IoU = (Σyp + 1) / (Σy + Σp − Σyp + 1), with predictions thresholded at 0.5.

    This is the definition of the published U-Net scaling study (Zenodo 10.5281/zenodo.7639190). Because of
    the +1 terms, a class that does not occur has an IoU of 1. With more than two classes, the mean over all.
    """

    def _of_classes(self, both: Values, true: Values, predicted: Values) -> Values:
        union = true + predicted - both
        return np.where(union > 0, (both + 1.0) / (union + 1.0), np.nan)

    def result(self) -> Any:
        """Return the IoU, a scalar."""
        union = self.true + self.predicted - self.intersection
        return keras.ops.mean((self.intersection + 1.0) / (union + 1.0))


class Precision(Overlap):
    """Share of the labels predicted as a class that belong to it; 0 if none is predicted."""

    def _of_classes(self, both: Values, true: Values, predicted: Values) -> Values:
        return ratio(both, predicted, true + predicted - both)


class Recall(Overlap):
    """Share of a class's labels that are predicted; 0 if a class is predicted but does not occur."""

    def _of_classes(self, both: Values, true: Values, predicted: Values) -> Values:
        return ratio(both, true, true + predicted - both)


class F1(Overlap):
    """Harmonic mean of a class's precision and recall, 2 TP / (2 TP + FP + FN)."""

    def _of_classes(self, both: Values, true: Values, predicted: Values) -> Values:
        return ratio(2 * both, true + predicted, true + predicted - both)


class Dice(F1):
    """2 |A∩B| / (|A| + |B|) for the pixels of each class over the whole set (Dice 1945)."""


class BalancedAccuracy(Overlap):
    """Mean recall of the classes that occur in the targets (Brodersen et al. 2010)."""

    of_background = True

    def _of_classes(self, both: Values, true: Values, predicted: Values) -> Values:
        return ratio(both, true, true)


class ConfusionMatrix(ClassMetric):
    """Counts of shape [classes, classes]: one row for each true class, one column for each predicted class.

    Its `result` is the share of labels on the diagonal, the accuracy.
    """

    label = "confusion_matrix"

    def _make_sums(self) -> None:
        self.counts = self.sums("counts", (self.classes, self.classes))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch; see `Overlap`."""
        ops, size = keras.ops, self.classes**2
        y_true, valid = split_ignored(y_true, self.ignore)
        index = ops.cast(y_true, "int64") * self.classes + likeliest(y_pred)
        index = ops.cast(flat(index, valid, size), "int32")
        counts = ops.bincount(index, minlength=size + 1)[:size]
        self.counts.assign(self.counts + ops.reshape(ops.cast(counts, "float64"), self.counts.shape))

    def matrix(self) -> NDArray[np.int64]:
        """Return the counts so far."""
        counts: NDArray[np.int64] = as_array(self.counts).astype(np.int64)
        return counts

    def result(self) -> Any:
        """Return the accuracy, a scalar."""
        counts = self.matrix()
        return float(np.trace(counts) / max(1, counts.sum()))


class OverLabels(ClassMetric):
    """Base class: the mean of a value of each label; 0 without labels."""

    def _make_sums(self) -> None:
        self.sum, self.seen = self.sums("sum"), self.sums("seen")

    def _of_labels(self, true: Any, outputs: Any) -> Any:
        """Return a boolean or a number for each label, of the shape of `true`."""
        raise NotImplementedError

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch; see `Overlap`."""
        ops = keras.ops
        y_true, valid = split_ignored(y_true, self.ignore)
        values = self._of_labels(y_true, y_pred)
        counted = ops.ones_like(values, dtype="bool") if valid is None else valid
        if keras.backend.standardize_dtype(values.dtype) == "bool":
            added = total(ops.expand_dims(ops.logical_and(values, counted), -1))[0]
        else:
            added = ops.sum(ops.where(counted, ops.cast(values, "float64"), 0.0))
        self.sum.assign(self.sum + added)
        self.seen.assign(self.seen + total(ops.expand_dims(counted, -1))[0])

    def result(self) -> Any:
        """Return the mean, a scalar."""
        return self.sum / keras.ops.maximum(self.seen, 1.0)


class Accuracy(OverLabels):
    """Share of labels whose most probable class is the true one."""

    def _of_labels(self, true: Any, outputs: Any) -> Any:
        return keras.ops.equal(keras.ops.cast(true, "int64"), likeliest(outputs))


class TopK(OverLabels):
    """Share of labels whose true class is among the `k` most probable classes."""

    options = MappingProxyType({"k": 5})
    k: int

    def _of_labels(self, true: Any, outputs: Any) -> Any:
        ops, values = keras.ops, probabilities(outputs)
        of_true = ops.where(is_of(true, self.classes), values, ops.full_like(values, -np.inf))
        above = ops.cast(ops.greater(values, ops.max(of_true, axis=-1, keepdims=True)), "float32")
        return ops.less(ops.sum(above, axis=-1), float(self.k))


class Brier(OverLabels):
    """½ Σ_c (p_c − y_c)², averaged over labels; (p − y)² for two classes (Brier 1950, halved)."""

    better = "lower"

    def _of_labels(self, true: Any, outputs: Any) -> Any:
        values = keras.ops.cast(probabilities(outputs), "float32")
        distance = keras.ops.square(values - keras.ops.cast(is_of(true, self.classes), "float32"))
        return keras.ops.sum(distance, axis=-1) / 2


BINS, BINS_OF_MANY, MANY = 8192, 2048, 64
"""Number of bins for log-odds from −REACH to REACH, and number for more than MANY classes. A bin is 1/256
wide (0.001 at p = 0.5), or 1/64."""
REACH = 16.0
"""Log-odds beyond it are counted in the outermost bins."""


class ScoreHistogram(ClassMetric):
    """Base class: histograms of each class's log-odds, for labels of the class and for other labels.

    Log-odds rank as probabilities do and resolve probabilities close to 0 or 1. Two scores in one bin count
    as equal; otherwise the result is exact. With two classes the scores of the second are used.
    """

    nothing = 0.0

    def _make_sums(self) -> None:
        self.bins = BINS if self.classes <= MANY else BINS_OF_MANY
        self.counts = self.sums("counts", (1 if self.classes == 2 else self.classes, 2, self.bins))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch; see `Overlap`."""
        ops = keras.ops
        y_true, valid = split_ignored(y_true, self.ignore)
        true, scores = is_of(y_true, self.classes), probabilities(y_pred)
        if self.classes == 2:
            true, scores = true[..., 1:], y_pred[..., -1:]
        beyond = self.counts.shape[0] * 2 * self.bins
        starts = np.arange(0, beyond, 2 * self.bins)
        index = ops.cast(true, "int64") * self.bins + bins_of(scores, self.bins) + starts
        index = flat(index, None if valid is None else ops.expand_dims(valid, -1), beyond)
        counts = ops.bincount(ops.cast(index, "int32"), minlength=beyond + 1)[:beyond]
        self.counts.assign(self.counts + ops.reshape(ops.cast(counts, "float64"), self.counts.shape))

    def _of_class(self, others: Values, true: Values) -> float:
        """Return the value of a class from its counts by rising score, each of shape [bins], or NaN."""
        raise NotImplementedError

    def _values(self) -> Values:
        return np.array([self._of_class(others, true) for others, true in as_array(self.counts)])

    def result(self) -> Any:
        """Return the metric, a scalar."""
        return mean_of(self._values(), self.nothing)

    def parts(self) -> dict[int, float]:
        """Return the values of classes by index, without classes that have none; {} for two classes."""
        return by_index(self._values()) if self.classes > 2 else {}


def bins_of(scores: Any, bins: int) -> Any:
    """Return the bin of each probability by its log-odds, int64."""
    ops = keras.ops
    scores = ops.cast(scores, "float32")
    odds = ops.log(ops.maximum(scores, 1e-30)) - ops.log1p(-ops.minimum(scores, 1 - 2.0**-24))
    places = ops.floor((ops.clip(odds, -REACH, REACH) + REACH) * (bins / (2 * REACH)))
    return ops.cast(ops.minimum(places, bins - 1), "int64")


class Auroc(ScoreHistogram):
    """Area under the receiver operating characteristic (Fawcett 2006), one class against the rest.

    It is the share of pairs of a label of the class and another label in which the first scores higher;
    equal scores count half. A class without such pairs is left out; if all are, the metric is 0.5.
    """

    nothing = 0.5

    def _of_class(self, others: Values, true: Values) -> float:
        pairs = others.sum() * true.sum()
        below = np.cumsum(others) - others
        return float((true * (below + others / 2)).sum() / pairs) if pairs else float("nan")


class AveragePrecision(ScoreHistogram):
    """Σ (R_n − R_{n−1}) P_n over falling thresholds, the area under the precision-recall curve in steps.

    A class that does not occur in the targets is left out; if all are, the metric is 0.
    """

    def _of_class(self, others: Values, true: Values) -> float:
        hits, chosen = np.cumsum(true[::-1]), np.cumsum((true + others)[::-1])
        precision = hits / np.maximum(chosen, 1)
        return float((true[::-1] * precision).sum() / hits[-1]) if hits[-1] else float("nan")


class Ece(ClassMetric):
    """Expected calibration error: Σ_b n_b/N |accuracy − confidence| over 15 equal bins (Guo et al. 2017).

    The bins are of the probability of the most probable class, in (0, 1].
    """

    better = "lower"
    bins = 15

    def _make_sums(self) -> None:
        self.totals = self.sums("sums", (3, self.bins))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch; see `Overlap`."""
        ops = keras.ops
        y_true, valid = split_ignored(y_true, self.ignore)
        right = ops.equal(ops.cast(y_true, "int64"), likeliest(y_pred))
        confidence = ops.max(ops.cast(probabilities(y_pred), "float32"), axis=-1)
        place = ops.clip(ops.ceil(confidence * float(self.bins)) - 1, 0, self.bins - 1)
        index = ops.cast(flat(ops.cast(place, "int64"), valid, self.bins), "int32")
        rows = [ops.cast(ops.bincount(index, minlength=self.bins + 1), "float64")]
        for values in (flat(right, None, 0), flat(confidence, None, 0.0)):
            rows.append(ops.bincount(index, ops.cast(values, "float64"), self.bins + 1))
        self.totals.assign(self.totals + ops.stack([row[: self.bins] for row in rows]))

    def result(self) -> Any:
        """Return the error, a scalar; 0 without labels."""
        seen, right, confidence = (self.totals[row] for row in range(3))
        return keras.ops.sum(keras.ops.abs(right - confidence)) / keras.ops.maximum(keras.ops.sum(seen), 1.0)


NAMED: Registry[Callable[..., keras.Metric]] = Registry(
    "scalestudy.metrics",
    lambda: {
        "iou": IoU,
        "dice": Dice,
        "accuracy": Accuracy,
        "top_k": TopK,
        "balanced_accuracy": BalancedAccuracy,
        "precision": Precision,
        "recall": Recall,
        "f1": F1,
        "auroc": Auroc,
        "average_precision": AveragePrecision,
        "ece": Ece,
        "brier": Brier,
        "confusion_matrix": ConfusionMatrix,
    },
)
"""Metrics for classes, by their names in study and task files: (number of classes, ignored value, name=…)."""
