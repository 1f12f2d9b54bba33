"""Where the mask of an image comes from: a file, or files of its objects."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from scalestudy.data.images import read_header, read_mask
from scalestudy.data.source import Array, Size
from scalestudy.errors import UserError


class Mask(Protocol):
    """A mask that is not read yet; its text names it in messages."""

    @property
    def files(self) -> tuple[Path, ...]:
        """What it is made from."""

    def read(self, size: Size) -> Array:
        """Decode it: [H, W] of its stored values. `size` is its image's, for what has no size of its own.

        Raises:
            UserError: it is damaged.
        """

    def turned(self) -> bool:
        """Whether its EXIF orientation turns or mirrors it."""


@dataclass(frozen=True)
class MaskFile:
    """A mask in a file of its own."""

    path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """What it is made from."""
        return (self.path,)

    def read(self, size: Size) -> Array:
        """Decode it: [H, W] of its stored values."""
        return read_mask(self.path)

    def turned(self) -> bool:
        """Whether its EXIF orientation turns or mirrors it."""
        return read_header(self.path).turned

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class ObjectMasks:
    """The union of the masks of an image's objects, each in a file of its own: 1 where there is an object."""

    paths: tuple[Path, ...]
    overlapping: set[Path] = field(default_factory=set, compare=False)
    """Is told the files whose objects lie on others: one set for all masks that share it."""

    @property
    def files(self) -> tuple[Path, ...]:
        """What it is made from."""
        return self.paths

    def read(self, size: Size) -> Array:
        """Decode and join them: [H, W] of 0 and 1.

        Raises:
            UserError: one is damaged, of another size than the first, or not binary.
        """
        joined = np.zeros(0, bool)
        for path in self.paths:
            values = read_mask(path)
            if joined.size and joined.shape != values.shape:
                raise UserError(
                    "masks of one size for the objects of one image",
                    f"{path} of {_shown(values)} and {self.paths[0]} of {_shown(joined)} pixels",
                    "Save each mask at the size of its image.",
                )
            if len(np.unique(values)) > 2:
                raise UserError(
                    "a binary mask for each object (0 outside, 255 or 1 inside)",
                    f"{path} with {len(np.unique(values))} values",
                    "Save the mask of each object as a binary PNG.",
                )
            if joined.size and (joined & (values > 0)).any():
                self.overlapping.add(path)
            joined = values > 0 if not joined.size else joined | (values > 0)
        return joined.astype(np.uint8)

    def turned(self) -> bool:
        """Whether its EXIF orientation turns or mirrors it."""
        return read_header(self.paths[0]).turned

    def __str__(self) -> str:
        return f"{self.paths[0].parent}/"


def _shown(mask: Array) -> str:
    return " x ".join(map(str, mask.shape))
