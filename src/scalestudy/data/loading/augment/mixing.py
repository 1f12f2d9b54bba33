"""Mix two samples: choose the other sample, its share and its place."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from scalestudy.data.loading.augment.parameters import Floats
from scalestudy.data.loading.order import Indices
from scalestudy.data.types import Array, Size
from scalestudy.study.augmentation import MIXING, Operation


@dataclass(frozen=True)
class Mixture:
    """How each of b samples is mixed.

    Attributes:
        others: Rows of the other samples, shape [b].
        shares: Share of the sample itself, shape [b], in [0, 1].
        boxes: Top, bottom, left and right (bottom and right exclusive) of the box taken from the other
            sample, shape [b, 4]; None if all pixels are blended.
    """

    others: Indices
    shares: Floats
    boxes: npt.NDArray[np.int64] | None


def two_targets(operations: Sequence[Operation], *, masks: bool) -> bool:
    """Whether mixed samples have two targets. CutMix on masks needs one: it also cuts and pastes the mask."""
    return any(
        operation.kind in MIXING and not (masks and operation.kind == "cutmix") for operation in operations
    )


def mixture(operation: Operation, drawn: Floats, candidates: Indices, size: Size) -> Mixture:
    """Choose the mixture of each sample for mixup (Zhang 2018) or CutMix (Yun 2019).

    Mixup blends two images. CutMix pastes a box of the other image; the share is the remaining area.
    `drawn` are uniform numbers [b, 2] or [b, 4]; `candidates` are rows of the training set.
    """
    alpha = operation["alpha"]
    others = candidates[(drawn[:, 0] * len(candidates)).astype(np.int64)]
    shares: Floats = special.betaincinv(alpha, alpha, drawn[:, 1])
    if operation.kind == "mixup":
        return Mixture(others, shares, None)
    sides = np.sqrt(1 - shares)[:, None] * size
    centres = drawn[:, 2:] * size
    first = np.clip(np.rint(centres - sides / 2), 0, size).astype(np.int64)
    last = np.clip(np.rint(centres + sides / 2), 0, size).astype(np.int64)
    boxes = np.stack([first[:, 0], last[:, 0], first[:, 1], last[:, 1]], axis=1)
    left = 1 - np.prod(last - first, axis=1) / np.prod(size)
    return Mixture(others, left, boxes)


def mix(image: Array, other: Array, index: int, what: Mixture) -> None:
    """Mix an image [H, W, C] in place; with boxes also a mask [H, W]."""
    if what.boxes is not None:
        top, bottom, left, right = what.boxes[index]
        image[top:bottom, left:right] = other[top:bottom, left:right]
        return
    share = np.float32(what.shares[index])
    blended = image * share + other * (1 - share)
    image[:] = np.rint(blended) if image.dtype.kind in "ui" else blended
