"""Base of metrics that have a value for every image, averaged over images."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.tasks.pixels import as_array


class OverImages(keras.Metric):
    """Sums of values over images, and of how many images have one; of each class apart.

    Args:
        classes: Number of classes; of 2, the value is that of the second, the foreground.
        ignore: Label of pixels that do not count, or None.
        name: Name of the metric.
    """

    better, bounded = "higher", True
    nothing = 1.0
    """What it is where no image has a value."""

    def __init__(self, classes: int = 2, ignore: int | None = None, name: str | None = None) -> None:
        super().__init__(name=name or type(self).__name__.lower(), dtype="float64")
        self.classes, self.ignore = classes, ignore
        self.first = 1 if classes == 2 else self.first_class()
        shape = (classes - self.first,)
        self.sum = self.add_variable(shape, "zeros", dtype="float64", name="sum")
        self.images = self.add_variable(shape, "zeros", dtype="float64", name="images")

    def first_class(self) -> int:
        """The first of more than two classes that has a value."""
        return 0

    def of_images(self, true: Any, outputs: Any) -> tuple[Any, Any]:
        """Value and weight (1, or 0 without a value) of each image and class, both float64 [B, classes]."""
        raise NotImplementedError

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch.

        Args:
            y_true: Class of each pixel, shape [B, H, W].
            y_pred: Outputs, shape [B, H, W, 1] or [B, H, W, classes].
            sample_weight: Not supported: every image counts once.
        """
        values, weights = self.of_images(y_true, y_pred)
        self.sum.assign(self.sum + keras.ops.sum(values * weights, axis=0))
        self.images.assign(self.images + keras.ops.sum(weights, axis=0))

    def _values(self) -> NDArray[np.float64]:
        total, images = map(as_array, (self.sum, self.images))
        return np.where(images > 0, total / np.maximum(images, 1), np.nan)

    def result(self) -> Any:
        """The mean over classes of the mean over images, a scalar."""
        values = self._values()
        return float(np.nanmean(values)) if np.isfinite(values).any() else self.nothing

    def parts(self) -> dict[int, float]:
        """Value of each class, of more than two, by its index, as far as it has one."""
        values = enumerate(self._values(), start=self.first) if self.classes > 2 else ()
        return {index: float(value) for index, value in values if np.isfinite(value)}

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same metric again."""
        return {"classes": self.classes, "ignore": self.ignore, "name": self.name}
