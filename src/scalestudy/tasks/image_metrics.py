"""Metrics with a value for each image: boundary F1 and object AP."""

from types import MappingProxyType
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.tasks.label_metrics import ClassMetric, Values, as_array, by_index, mean_of
from scalestudy.tasks.labels import is_of, likeliest, split_ignored

THRESHOLDS = np.arange(50, 100, 5) / 100
"""IoU thresholds of the Data Science Bowl 2018, 0.5 to 0.95."""


class OverImages(ClassMetric):
    """Base class: for each class, sums of values over images and the number of images with a value.

    With two classes the metric is the value of the second, the foreground; with more, the mean over classes
    from `first` on. If no image has a value, the metric is 1.
    """

    first = 0
    """Index of the first class with a value, for more than two classes."""

    def _make_sums(self) -> None:
        self.first = 1 if self.classes == 2 else self.first
        shape = (self.classes - self.first,)
        self.sum, self.images = self.sums("sum", shape), self.sums("images", shape)

    def _of_images(self, true: Any, outputs: Any) -> tuple[Any, Any]:
        """Return value and weight (0 without a value, else 1) of each image; float64 [B, classes]."""
        raise NotImplementedError

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add a batch: classes [B, H, W], outputs [B, H, W, 1] or [B, H, W, classes]."""
        values, weights = self._of_images(y_true, y_pred)
        self.sum.assign(self.sum + keras.ops.sum(values * weights, axis=0))
        self.images.assign(self.images + keras.ops.sum(weights, axis=0))

    def _values(self) -> Values:
        total, images = map(as_array, (self.sum, self.images))
        return np.where(images > 0, total / np.maximum(images, 1), np.nan)

    def result(self) -> Any:
        """Return the mean over classes of the mean over images, a scalar."""
        return mean_of(self._values(), 1.0)

    def parts(self) -> dict[int, float]:
        """Return the values of classes by index, without classes that have none; {} for two classes."""
        return by_index(self._values(), self.first) if self.classes > 2 else {}


class BoundaryF1(OverImages):
    """Mean of 2 P R / (P + R) over images and classes (Csurka et al. 2013; F of Perazzi et al. 2016).

    P is the share of pixels of the predicted boundary within `tolerance` of the true boundary, R the share
    of pixels of the true boundary within `tolerance` of the predicted one. A pixel is on the boundary of its
    class if one of its four neighbours is of another class; pixels outside the image and ignored pixels are
    no neighbours. An image without either boundary is left out; with only one of them it counts as 0.
    `tolerance` is a distance between pixel centres, in pixels.
    """

    label, options = "boundary_f1", MappingProxyType({"tolerance": 2.0})
    tolerance: float

    def _of_images(self, true: Any, outputs: Any) -> tuple[Any, Any]:
        ops = keras.ops
        true, valid = split_ignored(true, self.ignore)
        of_true, of_predicted = (
            boundary(is_of(labels, self.classes)[..., self.first :], valid)
            for labels in (true, likeliest(outputs))
        )
        disk = disk_of(self.tolerance)
        count_true, count_predicted = _pixels(of_true), _pixels(of_predicted)
        precision = _pixels(of_predicted * dilated(of_true, disk)) / ops.maximum(count_predicted, 1.0)
        recall = _pixels(of_true * dilated(of_predicted, disk)) / ops.maximum(count_true, 1.0)
        both = precision + recall
        counted = ops.cast(count_true + count_predicted > 0, "float64")
        return 2 * precision * recall / ops.where(both > 0, both, ops.ones_like(both)), counted


def boundary(of_class: Any, valid: Any) -> Any:
    """Return 1 on the boundary of each class, else 0; float32 [B, H, W, classes].

    `of_class`, of the same shape, is True in a pixel's class; `valid` [B, H, W] is False if ignored.
    """
    ops = keras.ops
    counted = filled = ops.cast(of_class, "float32")
    if valid is not None:
        mask = ops.cast(ops.expand_dims(valid, -1), "float32")
        counted, filled = counted * mask, ops.maximum(filled, 1.0 - mask)
    # The minimum over the four neighbours. Pooling ignores positions outside the image.
    around = [ops.max_pool(-filled, size, strides=1, padding="same") for size in ((3, 1), (1, 3))]
    return counted * ops.cast(ops.maximum(*around) > -1.0, "float32")


def disk_of(radius: float) -> NDArray[np.float32]:
    """Return ones within `radius` of the center, else zeros; shape [k, k]."""
    reach = np.arange(-int(radius), int(radius) + 1)
    return (np.hypot(*np.meshgrid(reach, reach)) <= radius).astype(np.float32)


def dilated(pixels: Any, disk: NDArray[np.float32]) -> Any:
    """Dilate `pixels` (ones and zeros, shape [B, H, W, classes]) by the disk."""
    kernel = np.repeat(disk[:, :, None, None], pixels.shape[-1], axis=2)
    # Sums of ones are exact; the threshold 0.5 also tolerates the rounding of faster algorithms.
    return keras.ops.cast(keras.ops.depthwise_conv(pixels, kernel, padding="same") > 0.5, "float32")


def _pixels(truths: Any) -> Any:
    ops = keras.ops
    return ops.sum(ops.cast(ops.sum(truths, axis=2), "float64"), axis=1)


class ObjectAP(OverImages):
    """Mean over thresholds of TP / (TP + FP + FN) of an image, averaged over images.

    This is the metric of the Data Science Bowl 2018 (Caicedo et al. 2019). A true and a predicted object
    match at a threshold if their IoU exceeds it; from 0.5 on each object has at most one match. Objects are
    the connected components of a class's pixels; the first class is the background. An image without objects
    in targets and prediction is left out. `connectivity` is 8, or 4 without diagonal neighbours.
    """

    first = 1
    label, options = "object_ap", MappingProxyType({"connectivity": 8})
    connectivity: int

    def _of_images(self, true: Any, outputs: Any) -> tuple[Any, Any]:

        def scores(true: NDArray[Any], predicted: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
            if self.ignore is not None:
                true, predicted = (np.where(true == self.ignore, 0, mask) for mask in (true, predicted))
            values = [
                object_score(one == label, other == label, self.connectivity)
                for one, other in zip(true, predicted, strict=True)
                for label in range(self.first, self.classes)
            ]
            array = np.array(values, np.float64).reshape(len(true), -1)
            return np.nan_to_num(array), np.isfinite(array).astype(np.float64)

        predicted = likeliest(outputs)
        if keras.backend.backend() != "tensorflow":  # only TensorFlow traces a graph here
            return scores(*map(keras.ops.convert_to_numpy, (true, predicted)))
        import tensorflow as tf

        values, weights = tf.numpy_function(scores, [true, predicted], [tf.float64, tf.float64])
        for tensor in (values, weights):
            tensor.set_shape((None, self.classes - self.first))
        return values, weights


def object_score(true: NDArray[np.bool_], predicted: NDArray[np.bool_], connectivity: int) -> float:
    """Return the mean over thresholds of TP / (TP + FP + FN) of one image [H, W]; NaN without any object."""
    from scipy.ndimage import generate_binary_structure, label

    near = generate_binary_structure(2, 2 if connectivity == 8 else 1)
    (one, ones), (two, twos) = label(true, near), label(predicted, near)
    if ones + twos == 0:
        return float("nan")
    pairs = np.bincount(one.ravel() * (twos + 1) + two.ravel(), minlength=(ones + 1) * (twos + 1))
    both = pairs.reshape(ones + 1, twos + 1)
    sizes = both.sum(axis=1)[1:, None], both.sum(axis=0)[None, 1:]
    both = both[1:, 1:]
    # IoU > 0.5 holds for at most one pair in each row and column, so matches are unique.
    iou = (both / (sizes[0] + sizes[1] - both)).ravel()
    hits = (iou[None] > THRESHOLDS[:, None]).sum(axis=1)
    return float(np.mean(hits / (ones + twos - hits)))
