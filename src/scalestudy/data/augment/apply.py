"""What is done to one sample, in NumPy."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scalestudy.data.augment.parameters import Parameters
from scalestudy.data.augment.warp import coordinates, nearest, sampled, turned, whole
from scalestudy.data.source import Array


def apply(image: Array, masks: Sequence[Array], index: int, what: Parameters, scale: float) -> None:
    """Change a sample in its place: moved, then contrast, brightness and noise, rounded once at the end.

    Args:
        image: Shape [H, W, C], as stored.
        masks: That move with it, each of shape [H, W].
        index: Which of the batch it is.
        what: What is done to the batch.
        scale: What multiplies stored integers into [0, 1]; numbers that are stored as floats are not cut off.
    """
    size = (image.shape[0], image.shape[1])
    matrix = None if what.matrix is None else what.matrix[index]
    displacement = None if what.displacement is None else what.displacement[index]
    light = what.contrast is not None or what.brightness is not None or what.noise is not None
    pixels: npt.NDArray[np.float32] | None = None
    if displacement is None and matrix is not None and whole(matrix, size):
        image[:] = turned(image, matrix).copy()
        for mask in masks:
            mask[:] = turned(mask, matrix).copy()
    elif displacement is not None or matrix is not None:
        at = coordinates(matrix, displacement, size)
        pixels = sampled(image, at)
        for mask in masks:
            mask[:] = nearest(mask, at)
    if light:
        pixels = _lit(image.astype(np.float32) if pixels is None else pixels, index, what, scale)
    if pixels is not None:
        store(pixels, image, scale)


def store(pixels: npt.NDArray[np.float32], image: Array, scale: float) -> None:
    """Into the image's own type: whole numbers are rounded, and cut off at black and white."""
    if image.dtype.kind in "ui":
        np.rint(pixels, out=pixels)
        np.clip(pixels, 0, round(1 / scale), out=pixels)
    image[:] = pixels


def _lit(
    pixels: npt.NDArray[np.float32], index: int, what: Parameters, scale: float
) -> npt.NDArray[np.float32]:
    full = np.float32(1 / scale)
    if what.contrast is not None:
        mean = np.mean(pixels, dtype=np.float64).astype(np.float32)
        pixels = (pixels - mean) * np.float32(what.contrast[index]) + mean
    if what.brightness is not None:
        pixels = pixels + np.float32(what.brightness[index]) * full
    if what.noise is not None:
        generator = np.random.Generator(np.random.Philox(int(what.noise[index])))
        noise = generator.standard_normal(pixels.shape, np.float32)
        pixels = pixels + noise * np.float32(what.sigma) * full
    return pixels
