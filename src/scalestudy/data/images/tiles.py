"""Tiles of an image that is too large: which there are, and their outputs put together again.

The overlap-tile strategy of Ronneberger, Fischer and Brox, "U-Net" (2015): a tile shows a margin of context
around its core, and only the core counts. The cores of an image's tiles hold each of its pixels exactly once.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scalestudy.data.types import IGNORE, Array, Size

Box = tuple[int, int, int, int]
"""Top, left, bottom, right in pixels; bottom and right are the first beyond."""


@dataclass(frozen=True)
class Tile:
    """Where a tile lies in its image, in pixels of the image.

    Attributes:
        top: Its first row; negative where the image is lower than a tile, and the tile padded above.
        left: Its first column; negative likewise.
        core: The part of the image that counts in this tile, and in no other.
    """

    top: int
    left: int
    core: Box

    @property
    def core_inside(self) -> tuple[slice, slice]:
        """The core as rows and columns of the tile."""
        top, left, bottom, right = self.core
        return slice(top - self.top, bottom - self.top), slice(left - self.left, right - self.left)

    @property
    def core_in_image(self) -> tuple[slice, slice]:
        """The core as rows and columns of the image."""
        top, left, bottom, right = self.core
        return slice(top, bottom), slice(left, right)


@dataclass(frozen=True)
class Tiling:
    """How the images of a set were cut: its rows are the tiles of one image after another.

    Attributes:
        size: Height and width of a tile.
        overlap: Pixels that neighbours share at least.
        images: Name and size of each image.
    """

    size: Size
    overlap: int
    images: tuple[tuple[str, Size], ...]

    def rows(self) -> Iterator[tuple[str, Size, Tile]]:
        """For each row the image that it is a tile of, that image's size, and the tile."""
        for name, size in self.images:
            for tile in tiles_of(size, self.size, self.overlap):
                yield name, size, tile


def tiles_of(size: Size, tile: Size, overlap: int) -> list[Tile]:
    """The tiles of an image, row by row: as few as overlap enough, spread evenly.

    Args:
        size: Height and width of the image.
        tile: Height and width of a tile.
        overlap: Pixels that neighbours share at least; each core ends `overlap // 2` or more before the tile
            does. Less than the sides of a tile.
    """
    rows, columns = (_along(*item, overlap) for item in zip(size, tile, strict=True))
    return [
        Tile(top, left, (core_top, core_left, core_bottom, core_right))
        for top, core_top, core_bottom in rows
        for left, core_left, core_right in columns
    ]


def cut(image: Array, tile: Tile, size: Size, fill: int = 0) -> Array:
    """A tile of an image [H, W, ...], of this size; what lies beyond the image is `fill`."""
    height, width = image.shape[:2]
    bottom, right = tile.top + size[0], tile.left + size[1]
    inside = image[max(tile.top, 0) : bottom, max(tile.left, 0) : right]
    if inside.shape[:2] == size:
        return inside
    before = (max(-tile.top, 0), max(-tile.left, 0))
    after = (max(bottom - height, 0), max(right - width, 0))
    around = [*zip(before, after, strict=True), *[(0, 0)] * (image.ndim - 2)]
    return np.pad(inside, around, constant_values=fill)


def cut_mask(mask: Array, tile: Tile, size: Size) -> Array:
    """A tile of a mask [H, W] that holds 255, which counts in nothing, everywhere but in its core."""
    whole = np.full(size, IGNORE, mask.dtype)
    whole[tile.core_inside] = mask[tile.core_in_image]
    return whole


def stitch(parts: Sequence[Array], tiles: Sequence[Tile], size: Size) -> Array:
    """Put the cores of an image's tiles together: [H, W, ...], from parts [h, w, ...], one for each tile.

    Raises:
        ValueError: There are more or fewer parts than tiles.
    """
    whole = np.empty((*size, *parts[0].shape[2:]), parts[0].dtype)
    for part, tile in zip(parts, tiles, strict=True):
        whole[tile.core_in_image] = part[tile.core_inside]
    return whole


def _along(length: int, tile: int, overlap: int) -> list[tuple[int, int, int]]:
    """Along one axis, each tile's start, and its core's start and stop."""
    if length <= tile:
        return [(-((tile - length) // 2), 0, length)]
    count = -(-(length - overlap) // (tile - overlap))
    starts = [index * (length - tile) // (count - 1) for index in range(count)]
    # Half of what two neighbours share belongs to each.
    between = [(left + tile + right) // 2 for left, right in itertools.pairwise(starts)]
    return list(zip(starts, [0, *between], [*between, length], strict=True))
