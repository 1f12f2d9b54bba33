"""Read training samples with the augmentation of an epoch."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
import numpy.typing as npt

from scalestudy.config.augmentation import GEOMETRIC, Operation
from scalestudy.data.columns import Columns, Forms
from scalestudy.data.loading.loader import Reader
from scalestudy.data.loading.slices import Indices
from scalestudy.data.loading.transforms import (
    Parameters,
    coordinates,
    draw,
    nearest,
    parameters,
    sampled,
    turned,
    whole,
)
from scalestudy.data.types import Array


def apply(image: Array, masks: Sequence[Array], index: int, what: Parameters, scale: float) -> None:
    """Augment a sample in place: geometry, then contrast, brightness and noise; values are rounded once.

    Args:
        image: Shape [H, W, C], as stored.
        masks: Masks [H, W] that get the same geometry.
        index: Index of the sample in the batch.
        what: Parameters of the batch.
        scale: Factor that scales stored values to [0, 1]. Integer images are clipped to that range, float
            images are not.
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
    """Copy pixels into `image`; for integer types round them and clip them to the full range."""
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


class Augmented:
    """Reads rows from another reader and augments them, determined by the seed, the epoch and the row.

    Args:
        reader: Reader of images [H, W, C], and masks [H, W] or classes.
        scale: Factor that scales stored images to [0, 1].
    """

    def __init__(self, reader: Reader, operations: Sequence[Operation], *, seed: int, scale: float) -> None:
        self._reader, self._seed, self._scale = reader, seed, scale
        self._operations = tuple(operations)
        self._moves = any(operation.kind in GEOMETRIC for operation in operations)

    def forms(self, rows: Indices) -> tuple[Forms, Forms]:
        return self._reader.forms(rows)

    def read(self, rows: Indices, epoch: int | None, inputs: Columns, targets: Columns) -> None:
        assert isinstance(inputs, np.ndarray)
        assert isinstance(targets, np.ndarray)
        self._reader.read(rows, epoch, inputs, targets)
        if epoch is None:
            return
        size = (inputs.shape[1], inputs.shape[2])
        what = parameters(self._operations, draw(self._operations, self._seed, epoch, rows), size)
        masks = self._moves and targets.shape[1:] == size

        def change(index: int) -> None:
            apply(inputs[index], [targets[index]] if masks else [], index, what, self._scale)

        list(self._threads.map(change, range(len(rows))))

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(len(os.sched_getaffinity(0)), "augment")
