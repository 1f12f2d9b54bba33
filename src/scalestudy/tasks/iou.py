"""Intersection over union, summed over a whole set and divided once."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.tasks.overlap import Counts, Overlap


class IoU(Overlap):
    """IoU = (Σyp + 1) / (Σy + Σp − Σyp + 1), with predictions thresholded at 0.5.

    The sums run over every pixel of every sample seen, so the value does not depend on batches or
    workers. With more than two classes: the mean over classes of each class's IoU, predictions
    being the most likely class. The definition is that of the published U-Net scaling study
    (Zenodo 10.5281/zenodo.7639190): its ones make that of a class that occurs nowhere 1.
    """

    def of_classes(self, counts: Counts) -> NDArray[np.float64]:
        """Of each class."""
        return (counts.both + 1.0) / (counts.union + 1.0)

    def result(self) -> Any:
        """The IoU, a scalar."""
        union = self.true + self.predicted - self.intersection
        return keras.ops.mean((self.intersection + 1.0) / (union + 1.0))

    def parts(self) -> dict[int, float]:
        """Of each class that occurs, of two of both."""
        counts = self.counts().of_both()
        values = np.where(counts.union > 0, self.of_classes(counts), np.nan)
        return {index: float(value) for index, value in enumerate(values) if np.isfinite(value)}
