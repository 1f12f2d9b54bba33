"""Metrics of binned probabilities: counts add up over workers."""

from typing import Any

import keras
import numpy as np

from scalestudy.tasks.label_metrics import ClassMetric, Values, as_array, by_index, mean_of
from scalestudy.tasks.labels import flat, is_of, likeliest, probabilities, split_ignored

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
