"""The confusion matrix: labels by their true and by their predicted class."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.tasks.pixels import as_array, flat, likeliest, split_ignored


class ConfusionMatrix(keras.Metric):
    """Counts, shape [classes, classes]: a row for each true class, a column for each predicted one.

    Its scalar is the share of labels on the diagonal, the accuracy.

    Args:
        classes: Number of classes.
        ignore: Label that does not count, or None.
        name: Name of the metric.
    """

    better, bounded = "higher", True

    def __init__(self, classes: int = 2, ignore: int | None = None, name: str = "confusion_matrix") -> None:
        super().__init__(name=name, dtype="float64")
        self.classes, self.ignore = classes, ignore
        self.counts = self.add_variable((classes, classes), "zeros", dtype="float64", name="counts")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch; see `Overlap`."""
        ops, size = keras.ops, self.classes**2
        y_true, valid = split_ignored(y_true, self.ignore)
        index = ops.cast(y_true, "int64") * self.classes + likeliest(y_pred)
        index = ops.cast(flat(index, valid, size), "int32")
        found = ops.bincount(index, minlength=size + 1)[:size]
        self.counts.assign(self.counts + ops.reshape(ops.cast(found, "float64"), self.counts.shape))

    def matrix(self) -> NDArray[np.int64]:
        """The counts so far."""
        counts: NDArray[np.int64] = as_array(self.counts).astype(np.int64)
        return counts

    def result(self) -> Any:
        """The accuracy, a scalar."""
        counts = self.matrix()
        return float(np.trace(counts) / max(1, counts.sum()))

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same metric again."""
        return {"classes": self.classes, "ignore": self.ignore, "name": self.name}
