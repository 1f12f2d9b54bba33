"""What is seen of each sample when a set is looked through."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scalestudy.data.types import IGNORE, Sample
from scalestudy.features.inspect import fingerprints

Array = npt.NDArray[Any]
LEVELS = 256


@dataclass
class Seen:
    """The samples of a set, one row each.

    Attributes:
        names: A name for each.
        groups: The group of each, or None.
        splits: "train", "validation" or "test", or "" where nobody has split them yet.
        digests: Of their pixels.
        hashes: Their perceptual hashes.
        thumbs: Their thumbnails.
        sides: Their longer sides in pixels.
        lowest: Their lowest values.
        highest: Their highest values.
        pixels: Of masks, how many pixels each class has, shape [256]; of classes, the class.
    """

    names: list[str]
    groups: list[str] | None
    splits: list[str]
    digests: list[bytes] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)
    thumbs: list[Array] = field(default_factory=list)
    sides: list[int] = field(default_factory=list)
    lowest: list[float] = field(default_factory=list)
    highest: list[float] = field(default_factory=list)
    pixels: list[Array] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Samples seen."""
        return len(self.digests)

    @property
    def of_classes(self) -> Array:
        """Pixels of each class in each sample, shape [N, 256]; of classes, 1 for that of the sample."""
        return np.stack(self.pixels)

    def add(self, image: Array, target: Array | int) -> None:
        """Look at one sample."""
        self.digests.append(fingerprints.digest(image))
        thumb = fingerprints.thumbnail(image)
        self.thumbs.append(thumb)
        self.hashes.append(fingerprints.dhash(thumb))
        self.sides.append(max(image.shape[:2]))
        self.lowest.append(float(image.min()))
        self.highest.append(float(image.max()))
        self.pixels.append(np.bincount(np.asarray(target).ravel(), minlength=LEVELS).astype(np.int64))


def look_through(
    seen: Seen,
    samples: Iterable[Sample],
    keep: set[int],
    on_progress: Callable[[int, int | None], None] | None = None,
) -> dict[int, Sample]:
    """Look at all samples; the ones at the rows `keep` are given back."""
    kept: dict[int, Sample] = {}
    for row, (image, target) in enumerate(samples):
        seen.add(image, target)
        if row in keep:
            kept[row] = (np.array(image), np.array(target) if isinstance(target, np.ndarray) else target)
        if on_progress is not None:
            on_progress(row + 1, len(seen.names))
    return kept


def labelled(pixels: Array) -> Array:
    """Which samples hold a class other than the first, of counts [N, 256]; 255 is none."""
    found: Array = pixels[:, 1:IGNORE].sum(axis=1) > 0
    return found
