"""A look at a few images, to tell masks from images before a set is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from scalestudy.data.images.decode import read_pixels
from scalestudy.data.samples import Size
from scalestudy.util.errors import UserError

Item = TypeVar("Item")

TRIED = 4
"""Number of images to look at for each folder."""
_FEW = 32
"""Maximum number of colours of a mask; public sets have up to about 30 classes."""
_FEW_IN_JPEG = 8
_RARE = 0.002
"""Share of pixels below which a value of a JPEG counts as smear."""
_MOST_SMEAR = 0.5
"""Share of smear from which a JPEG is a photo: each of its colours may be rare."""


@dataclass(frozen=True)
class Glance:
    """Size of an image, whether it is grey, and whether it has few colours, as masks do."""

    size: Size
    grey: bool
    few: bool


def glance(path: Path) -> Glance | None:
    """Decode an image; None if it cannot be read, which reading the set refuses by name."""
    try:
        pixels = read_pixels(path)
    except UserError:
        return None
    colours = pixels.reshape(-1, pixels.shape[-1])
    grey = bool((np.ptp(colours, axis=1) == 0).all())
    if grey:
        colours = colours[:, :1]
    _, counts = np.unique(colours, axis=0, return_counts=True)
    few = len(counts) <= _FEW
    if path.suffix.lower().startswith(".j"):
        # JPEG smears the borders of a mask into many rare values, which do not count.
        common = counts[counts >= _RARE * len(colours)]
        smear = len(colours) - common.sum()
        few = len(common) <= _FEW_IN_JPEG and smear < _MOST_SMEAR * len(colours)
    return Glance((pixels.shape[0], pixels.shape[1]), grey, few)


def spread(items: Sequence[Item], most: int = TRIED) -> list[Item]:
    """Return at most this many items, evenly spaced."""
    # Neighbours in a list are often alike, as images of one class or of one patient.
    last = len(items) - 1
    count = min(most, len(items))
    places = np.linspace(0, last, count)
    chosen = places.round().astype(int)
    return [items[index] for index in chosen]
