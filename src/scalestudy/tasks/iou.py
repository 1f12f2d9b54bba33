"""Intersection over union, summed over a whole set and divided once."""

from typing import Any

import keras
import numpy as np


class IoU(keras.Metric):
    """IoU = (Σyp + 1) / (Σy + Σp − Σyp + 1), with predictions thresholded at 0.5.

    The sums run over every pixel of every sample seen, so the value does not depend on batches or
    workers. With more than two classes: the mean over classes of each class's IoU, predictions
    being the most likely class. The definition is that of the published U-Net scaling study
    (Zenodo 10.5281/zenodo.7639190).

    Args:
        classes: Number of classes; 2 means one output channel (sigmoid).
        ignore: Label of pixels that do not count, or None.
        name: Name of the metric.
    """

    better, bounded = "higher", True

    def __init__(self, classes: int = 2, ignore: int | None = None, name: str = "iou") -> None:
        # float64: float32 stops counting at 2^24 pixels, which 22 images of 768x1024 exceed.
        super().__init__(name=name, dtype="float64")
        self.classes, self.ignore = classes, ignore
        shape = (1 if classes == 2 else classes,)
        for sums in ("intersection", "true", "predicted"):
            variable = self.add_variable(shape, "zeros", dtype="float64", name=sums)
            setattr(self, sums, variable)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch.

        Args:
            y_true: Class of each pixel, shape [B, H, W].
            y_pred: Outputs, shape [B, H, W, 1] or [B, H, W, classes].
            sample_weight: Not supported: every sample counts once.
        """
        ops = keras.ops
        # No int32: TensorFlow's kernels for it on GPUs compute in host memory, to which all pixels would
        # be copied. Ones are added up along rows in float32, and then in float64: exactly, in any order.
        y_true = ops.cast(y_true, "int64")
        valid = ops.not_equal(y_true, self.ignore) if self.ignore is not None else None
        if self.classes == 2:
            true = ops.expand_dims(ops.equal(y_true, 1), -1)
            predicted = ops.greater_equal(y_pred, 0.5)
        else:
            classes = np.arange(self.classes)
            true = ops.equal(ops.expand_dims(y_true, -1), classes)
            # Keras's argmax of numbers looks at their signs in int32; that of truths does not.
            likeliest = ops.equal(y_pred, ops.max(y_pred, axis=-1, keepdims=True))
            best = ops.cast(ops.argmax(likeliest, axis=-1), "int64")
            predicted = ops.equal(ops.expand_dims(best, -1), classes)
        if valid is not None:
            true = ops.logical_and(true, ops.expand_dims(valid, -1))
            predicted = ops.logical_and(predicted, ops.expand_dims(valid, -1))
        both = ops.logical_and(true, predicted)
        for variable, pixels in ((self.intersection, both), (self.true, true), (self.predicted, predicted)):
            rows = ops.sum(ops.cast(pixels, "float32"), axis=2)
            variable.assign(variable + ops.sum(ops.cast(rows, "float64"), axis=(0, 1)))

    def result(self) -> Any:
        """The IoU, a scalar."""
        union = self.true + self.predicted - self.intersection
        return keras.ops.mean((self.intersection + 1.0) / (union + 1.0))

    def reset_state(self) -> None:
        """Forget all samples."""
        for variable in (self.intersection, self.true, self.predicted):
            variable.assign(keras.ops.zeros(variable.shape, dtype="float64"))

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same metric again."""
        return {"classes": self.classes, "ignore": self.ignore, "name": self.name}
