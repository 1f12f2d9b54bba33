"""The boundary F1: whether the edges of what is predicted lie where those of the truth lie."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from scalestudy.tasks.of_images import OverImages
from scalestudy.tasks.pixels import is_of, likeliest, split_ignored


class BoundaryF1(OverImages):
    """2 P R / (P + R) of each image and class, averaged (Csurka et al. 2013; F of Perazzi et al. 2016).

    P is the share of the predicted boundary's pixels that lie within the tolerance of the true one, R the
    share of the true boundary's within the tolerance of the predicted one. A pixel of a class is on its
    boundary if one of its four neighbours is of another class; what lies beyond the image, or is ignored, is
    no neighbour. An image in which neither has a boundary is left out; where one has, it counts 0.

    Args:
        classes: Number of classes.
        ignore: Label of pixels that do not count, or None.
        tolerance: Greatest distance in pixels, between their centres.
        name: Name of the metric.
    """

    def __init__(
        self,
        classes: int = 2,
        ignore: int | None = None,
        tolerance: float = 2.0,
        name: str | None = None,
    ) -> None:
        super().__init__(classes, ignore, name or "boundary_f1")
        self.tolerance = tolerance

    def of_images(self, true: Any, outputs: Any) -> tuple[Any, Any]:
        """F of each image and class."""
        ops = keras.ops
        true, valid = split_ignored(true, self.ignore)
        own = boundary(is_of(true, self.classes)[..., self.first :], valid)
        found = boundary(is_of(likeliest(outputs), self.classes)[..., self.first :], valid)
        disk = disk_of(self.tolerance)
        near_own, near_found = dilated(own, disk), dilated(found, disk)
        of_own, of_found = _pixels(own), _pixels(found)
        precision = _pixels(found * near_own) / ops.maximum(of_found, 1.0)
        recall = _pixels(own * near_found) / ops.maximum(of_own, 1.0)
        both = precision + recall
        some = ops.cast(of_own + of_found > 0, "float64")
        return 2 * precision * recall / ops.where(both > 0, both, ops.ones_like(both)), some

    def get_config(self) -> dict[str, Any]:
        """Arguments that make the same metric again."""
        return super().get_config() | {"tolerance": self.tolerance}


def boundary(of_class: Any, valid: Any) -> Any:
    """1 on the boundary of each class, else 0; shape [B, H, W, classes], float32.

    Args:
        of_class: Whether each pixel is of each class, the same shape.
        valid: Whether it counts, shape [B, H, W]; None for everywhere.
    """
    ops = keras.ops
    inside = ops.cast(of_class, "float32")
    if valid is None:
        counted = filled = inside
    else:
        mask = ops.cast(ops.expand_dims(valid, -1), "float32")
        counted, filled = inside * mask, ops.maximum(inside, 1.0 - mask)
    # A minimum over the cross of four neighbours. Pooling leaves out what lies beyond the image.
    around = [ops.max_pool(-filled, size, strides=1, padding="same") for size in ((3, 1), (1, 3))]
    return counted * ops.cast(ops.maximum(*around) > -1.0, "float32")


def disk_of(radius: float) -> NDArray[np.float32]:
    """Ones within `radius` of the middle, shape [k, k]."""
    reach = np.arange(-int(radius), int(radius) + 1)
    return (np.hypot(*np.meshgrid(reach, reach)) <= radius).astype(np.float32)


def dilated(pixels: Any, disk: NDArray[np.float32]) -> Any:
    """1 wherever a pixel that is 1 lies within the disk, else 0; shape [B, H, W, classes]."""
    ops, classes = keras.ops, pixels.shape[-1]
    kernel = np.repeat(disk[:, :, None, None], classes, axis=2)
    # Sums of ones are exact; half of one is beyond all rounding of faster arithmetic.
    return ops.cast(ops.depthwise_conv(pixels, kernel, padding="same") > 0.5, "float32")


def _pixels(truths: Any) -> Any:
    ops = keras.ops
    return ops.sum(ops.cast(ops.sum(truths, axis=2), "float64"), axis=1)
