"""Read training samples with the augmentation of an epoch."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
import numpy.typing as npt

from scalestudy.data.columns import Columns, Form, Forms
from scalestudy.data.loading.augment.mixing import Mixture, mix, mixture, two_targets
from scalestudy.data.loading.augment.parameters import Parameters, draw, parameters
from scalestudy.data.loading.augment.warp import coordinates, nearest, sampled, turned, whole
from scalestudy.data.loading.order import Indices
from scalestudy.data.loading.reader import Reader
from scalestudy.data.types import Array, Size
from scalestudy.study.augmentation import GEOMETRIC, MIXING, Operation
from scalestudy.util.errors import UserError


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


FIRST, SECOND, SHARE = "first", "second", "share"
"""Names of the targets of mixed samples: of the sample, of the other, and the share of the first."""


class Augmented:
    """Reads rows from another reader and augments them, determined by the seed, the epoch and the row.

    Args:
        reader: Reader of images [H, W, C], and masks [H, W] or classes.
        operations: Operations in their order; mixing always comes first.
        seed: Seed of the run.
        scale: Factor that scales stored images to [0, 1].
        candidates: Rows of the training set, for mixing.

    Raises:
        UserError: If the data are not images with one input and one target.
    """

    def __init__(
        self, reader: Reader, operations: Sequence[Operation], *, seed: int, scale: float,
        candidates: Indices,
    ) -> None:  # fmt: skip
        self._reader, self._seed, self._scale = reader, seed, scale
        self._candidates = candidates
        self._mixing = next((operation for operation in operations if operation.kind in MIXING), None)
        self._changes = tuple(operation for operation in operations if operation.kind not in MIXING)
        image, target = reader.forms(candidates[:1])
        self._image, self._target = _of_one_image(image), _of_one_image(target)
        if len(self._image[0]) != 3:
            raise _no_images(f"samples of the shape {list(self._image[0])}")
        self._size: Size = self._image[0][0], self._image[0][1]
        self._masks = self._target[0] == self._size
        self._moves = any(change.kind in GEOMETRIC for change in self._changes)
        self._forms = self._image, self._targets_form(operations)

    def forms(self, rows: Indices) -> tuple[Forms, Forms]:
        return self._forms

    def read(self, rows: Indices, epoch: int | None, inputs: Columns, targets: Columns) -> None:
        assert isinstance(inputs, np.ndarray)
        first = targets[FIRST] if isinstance(targets, Mapping) else targets
        self._reader.read(rows, epoch, inputs, first)
        if isinstance(targets, Mapping):
            targets[SECOND][:], targets[SHARE][:] = first, 1
        if epoch is None:
            return
        if self._mixing:
            drawn = draw([self._mixing], self._seed, epoch, rows)[self._mixing.kind]
            self._mix(mixture(self._mixing, drawn, self._candidates, self._size), epoch, inputs, targets)
        self._change(rows, epoch, inputs, targets)

    def _targets_form(self, operations: Sequence[Operation]) -> Forms:
        if not two_targets(operations, masks=self._masks):
            return self._target
        return {FIRST: self._target, SECOND: self._target, SHARE: ((), np.dtype(np.float32))}

    def _change(self, rows: Indices, epoch: int, inputs: Array, targets: Columns) -> None:
        if not self._changes:
            return
        what = parameters(self._changes, draw(self._changes, self._seed, epoch, rows), self._size)
        masks = [targets] if isinstance(targets, np.ndarray) else [targets[FIRST], targets[SECOND]]

        def change(index: int) -> None:
            moved = [mask[index] for mask in masks] if self._masks and self._moves else []
            apply(inputs[index], moved, index, what, self._scale)

        list(self._threads.map(change, range(len(rows))))

    def _mix(self, what: Mixture, epoch: int, inputs: Array, targets: Columns) -> None:
        images = np.empty_like(inputs)
        first = targets[FIRST] if isinstance(targets, Mapping) else targets
        others = np.empty_like(first)
        self._reader.read(what.others, epoch, images, others)
        for index in range(len(inputs)):
            mix(inputs[index], images[index], index, what)
            if not isinstance(targets, Mapping):
                mix(targets[index], others[index], index, what)
        if isinstance(targets, Mapping):
            targets[SECOND][:], targets[SHARE][:] = others, what.shares

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(len(os.sched_getaffinity(0)), "augment")


def _of_one_image(form: Forms) -> Form:
    if isinstance(form, Mapping):
        raise _no_images(f"samples of {', '.join(form)}")
    return form


def _no_images(received: str) -> UserError:
    return UserError(
        "images, each with a mask or a class, for train.augment",
        received,
        "Remove train.augment, and augment in the task's own read() or model.",
    )
