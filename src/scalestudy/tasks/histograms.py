"""Metrics of probabilities that are counted in bins, so that their sums add up over workers."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.tasks.pixels import as_array, flat, is_of, likeliest, probabilities, split_ignored

BINS, BINS_OF_MANY, MANY = 8192, 2048, 64
"""Bins of log-odds from −REACH to REACH, and for more than so many classes: 1/256 each, which at p = 0.5 is
0.001, and 1/64."""
REACH = 16.0
"""Log-odds beyond it are counted at the ends; a float32 probability below 1 does not reach it."""


class Ranking(keras.Metric):
    """Base: counts of the true and other labels of each class by the log-odds of its probability.

    A ranking does not change with what rises with the probability, so that the log-odds keep apart what is
    close to 0 or 1. Two scores of one bin count as equal; all else is exact.

    Args:
        classes: Number of classes; of 2, the scores of the second are ranked.
        ignore: Label that does not count, or None.
        name: Name of the metric.
    """

    better, bounded = "higher", True
    nothing = 0.0

    def __init__(self, classes: int = 2, ignore: int | None = None, name: str | None = None) -> None:
        super().__init__(name=name or type(self).__name__.lower(), dtype="float64")
        self.classes, self.ignore = classes, ignore
        ranked, self.bins = 1 if classes == 2 else classes, BINS if classes <= MANY else BINS_OF_MANY
        self.counts = self.add_variable((ranked, 2, self.bins), "zeros", dtype="float64", name="counts")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch; see `Overlap`."""
        ops = keras.ops
        y_true, valid = split_ignored(y_true, self.ignore)
        true, scores = is_of(y_true, self.classes), probabilities(y_pred)
        if self.classes == 2:
            true, scores = true[..., 1:], y_pred[..., -1:]
        ranked = self.counts.shape[0]
        beyond = ranked * 2 * self.bins
        places = np.arange(0, beyond, 2 * self.bins)
        index = ops.cast(true, "int64") * self.bins + bins_of(scores, self.bins) + places
        index = flat(index, None if valid is None else ops.expand_dims(valid, -1), beyond)
        found = ops.bincount(ops.cast(index, "int32"), minlength=beyond + 1)
        found = ops.reshape(ops.cast(found[:beyond], "float64"), self.counts.shape)
        self.counts.assign(self.counts + found)

    def of_class(self, others: NDArray[np.float64], true: NDArray[np.float64]) -> float:
        """Value of a class from its counts by rising score, each of shape [bins]; NaN if it has none."""
        raise NotImplementedError

    def _values(self) -> list[float]:
        counts = as_array(self.counts)
        return [self.of_class(others, true) for others, true in counts]

    def result(self) -> Any:
        """The metric, a scalar."""
        values = self._values()
        return float(np.nanmean(values)) if np.isfinite(values).any() else self.nothing

    def parts(self) -> dict[int, float]:
        """Value of each class, of more than two, by its index, as far as it has one."""
        values = self._values() if self.classes > 2 else []
        return {index: value for index, value in enumerate(values) if np.isfinite(value)}

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same metric again."""
        return {"classes": self.classes, "ignore": self.ignore, "name": self.name}


def bins_of(scores: Any, bins: int) -> Any:
    """Bin of each probability by its log-odds, int64."""
    ops = keras.ops
    scores = ops.cast(scores, "float32")
    odds = ops.log(ops.maximum(scores, 1e-30)) - ops.log1p(-ops.minimum(scores, 1 - 2.0**-24))
    places = ops.floor((ops.clip(odds, -REACH, REACH) + REACH) * (bins / (2 * REACH)))
    return ops.cast(ops.minimum(places, bins - 1), "int64")


class Auroc(Ranking):
    """Area under the receiver operating characteristic (Fawcett 2006); of more classes each against the rest.

    The share of pairs of a true and another label of which the true one scores higher, equals for half. A
    class with labels of one kind alone is left out; where all are, the metric is 0.5.
    """

    nothing = 0.5

    def of_class(self, others: NDArray[np.float64], true: NDArray[np.float64]) -> float:
        """Of one class."""
        pairs = others.sum() * true.sum()
        below = np.cumsum(others) - others
        return float((true * (below + others / 2)).sum() / pairs) if pairs else float("nan")


class AveragePrecision(Ranking):
    """Σ (R_n − R_{n−1}) P_n over falling thresholds, the area under the precision-recall curve in steps.

    A class without a true label is left out; where all are, the metric is 0.
    """

    def of_class(self, others: NDArray[np.float64], true: NDArray[np.float64]) -> float:
        """Of one class."""
        hits, chosen = np.cumsum(true[::-1]), np.cumsum((true + others)[::-1])
        precision = hits / np.maximum(chosen, 1)
        return float((true[::-1] * precision).sum() / hits[-1]) if hits[-1] else float("nan")


class Ece(keras.Metric):
    """Expected calibration error: Σ_b n_b/N |accuracy − confidence| over equal bins (Guo et al. 2017).

    Args:
        classes: Number of classes.
        ignore: Label that does not count, or None.
        bins: How many, of the probability of the most probable class in (0, 1].
        name: Name of the metric.
    """

    better, bounded = "lower", True

    def __init__(
        self, classes: int = 2, ignore: int | None = None, bins: int = 15, name: str | None = None
    ) -> None:
        super().__init__(name=name or "ece", dtype="float64")
        self.classes, self.ignore, self.bins = classes, ignore, bins
        self.sums = self.add_variable((3, bins), "zeros", dtype="float64", name="sums")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch; see `Overlap`."""
        ops = keras.ops
        y_true, valid = split_ignored(y_true, self.ignore)
        right = ops.equal(ops.cast(y_true, "int64"), likeliest(y_pred))
        confidence = ops.max(ops.cast(probabilities(y_pred), "float32"), axis=-1)
        place = ops.clip(ops.ceil(confidence * float(self.bins)) - 1, 0, self.bins - 1)
        index = ops.cast(flat(ops.cast(place, "int64"), valid, self.bins), "int32")
        values = (flat(right, None, 0), flat(confidence, None, 0.0))
        found = [ops.cast(ops.bincount(index, minlength=self.bins + 1), "float64")]
        found += [ops.bincount(index, ops.cast(each, "float64"), self.bins + 1) for each in values]
        self.sums.assign(self.sums + ops.stack([each[: self.bins] for each in found]))

    def result(self) -> Any:
        """The error, a scalar; 0 where there is no label."""
        seen, right, confidence = (self.sums[row] for row in range(3))
        return keras.ops.sum(keras.ops.abs(right - confidence)) / keras.ops.maximum(keras.ops.sum(seen), 1.0)

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same metric again."""
        return {"classes": self.classes, "ignore": self.ignore, "bins": self.bins, "name": self.name}
