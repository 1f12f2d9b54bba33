"""Average precision of objects: how many are found, not how many of their pixels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.tasks.of_images import OverImages
from scalestudy.tasks.pixels import likeliest

THRESHOLDS = np.arange(50, 100, 5) / 100
"""Of the Data Science Bowl 2018, 0.5 to 0.95."""


class ObjectAP(OverImages):
    """The mean over thresholds of TP / (TP + FP + FN) of each image, averaged over images.

    The metric of the Data Science Bowl 2018 (Caicedo et al. 2019): a true and a predicted object match at a
    threshold if their IoU is above it, which leaves no choice from 0.5 on. Objects are the connected parts of
    a class's pixels, in truth and in prediction. An image without any object in both is left out.

    Args:
        classes: Number of classes; the first is the background.
        ignore: Label of pixels that are of no object, neither in truth nor in prediction, or None.
        connectivity: Neighbours of a pixel that are of its object: 8, or 4 without the diagonal ones.
        name: Name of the metric.
    """

    def __init__(
        self, classes: int = 2, ignore: int | None = None, connectivity: int = 8, name: str | None = None
    ) -> None:
        super().__init__(classes, ignore, name or "object_ap")
        self.connectivity = connectivity

    def first_class(self) -> int:
        """The background has no objects."""
        return 1

    def of_images(self, true: Any, outputs: Any) -> tuple[Any, Any]:
        """Score of each image and class, computed on the host."""
        import tensorflow as tf

        def scores(true: NDArray[Any], found: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
            if self.ignore is not None:
                true, found = (np.where(true == self.ignore, 0, each) for each in (true, found))
            each = [
                [object_score(one == c, two == c, self.connectivity) for c in range(self.first, self.classes)]
                for one, two in zip(true, found, strict=True)
            ]
            values = np.array(each, np.float64).reshape(len(true), -1)
            return np.nan_to_num(values), np.isfinite(values).astype(np.float64)

        values, weights = tf.numpy_function(scores, [true, likeliest(outputs)], [tf.float64, tf.float64])
        for each in (values, weights):
            each.set_shape((None, self.classes - self.first))
        return values, weights

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same metric again."""
        return super().get_config() | {"connectivity": self.connectivity}


def object_score(true: NDArray[np.bool_], found: NDArray[np.bool_], connectivity: int) -> float:
    """Mean over thresholds of TP / (TP + FP + FN) of one image; NaN without any object.

    Args:
        true: The pixels of objects, shape [H, W].
        found: The predicted ones.
        connectivity: 4 or 8.
    """
    from scipy.ndimage import generate_binary_structure, label

    near = generate_binary_structure(2, 2 if connectivity == 8 else 1)
    (one, ones), (two, twos) = label(true, near), label(found, near)
    if ones + twos == 0:
        return float("nan")
    pairs = np.bincount(one.ravel() * (twos + 1) + two.ravel(), minlength=(ones + 1) * (twos + 1))
    both = pairs.reshape(ones + 1, twos + 1)
    sizes = both.sum(axis=1)[1:, None], both.sum(axis=0)[None, 1:]
    both = both[1:, 1:]
    # Only pairs that are more than half of their union can match: at most one of each row and column.
    iou = (both / (sizes[0] + sizes[1] - both)).ravel()
    hits = (iou[None] > THRESHOLDS[:, None]).sum(axis=1)
    return float(np.mean(hits / (ones + twos - hits)))
