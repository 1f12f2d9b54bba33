"""Cut large images into tiles, and put the outputs of tiles together.

This is the overlap-tile strategy of Ronneberger, Fischer and Brox, "U-Net" (2015): a tile has a margin of
context around its core, and only the core counts. The cores of an image's tiles contain each pixel once.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scalestudy.data.samples import IGNORE, Array, Size

Box = tuple[int, int, int, int]
"""Top, left, bottom, right in pixels; bottom and right are exclusive."""


@dataclass(frozen=True)
class Tile:
    """Position of a tile, in pixels of its image.

    Attributes:
        top: First row; negative if the image is lower than a tile, which is then padded at the top.
        left: First column; negative if the image is narrower than a tile.
        core: Part of the image that counts only in this tile.
    """

    top: int
    left: int
    core: Box

    @property
    def core_inside(self) -> tuple[slice, slice]:
        """The core as rows and columns of the tile."""
        top, left, bottom, right = self.core
        return slice(top - self.top, bottom - self.top), slice(
            left - self.left, right - self.left
        )

    @property
    def core_in_image(self) -> tuple[slice, slice]:
        """The core as rows and columns of the image."""
        top, left, bottom, right = self.core
        return slice(top, bottom), slice(left, right)


def overlap_of(tile: Size) -> int:
    """Return the minimum overlap of tiles of this size, in pixels: an eighth of the shorter side."""
    return min(tile) // 8


def tiles_of(size: Size, tile: Size, overlap: int) -> list[Tile]:
    """Return the tiles of an image, row by row: as few as possible, evenly spread.

    Args:
        size: Height and width of the image.
        tile: Height and width of a tile.
        overlap: Minimum overlap of neighbours in pixels, less than the sides of a tile. Between neighbours a
            core ends at least `overlap // 2` before its tile.
    """
    rows, columns = (_along(*item, overlap) for item in zip(size, tile, strict=True))
    return [
        Tile(top, left, (core_top, core_left, core_bottom, core_right))
        for top, core_top, core_bottom in rows
        for left, core_left, core_right in columns
    ]


def cut(image: Array, tile: Tile, size: Size, fill: int = 0) -> Array:
    """Cut a tile of this size out of an image [H, W, ...]; pixels outside the image are `fill`."""
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
    """Cut a tile out of a mask [H, W]; outside its core it is 255, which is ignored."""
    whole = np.full(size, IGNORE, mask.dtype)
    whole[tile.core_inside] = mask[tile.core_in_image]
    return whole


def stitch(parts: Sequence[Array], tiles: Sequence[Tile], size: Size) -> Array:
    """Assemble an image [H, W, ...] from the cores of parts [h, w, ...], one for each tile.

    Raises:
        ValueError: If the numbers of parts and tiles differ.
    """
    whole = np.empty((*size, *parts[0].shape[2:]), parts[0].dtype)
    for part, tile in zip(parts, tiles, strict=True):
        whole[tile.core_in_image] = part[tile.core_inside]
    return whole


def _along(length: int, tile: int, overlap: int) -> list[tuple[int, int, int]]:
    """Return the start of each tile, and the start and stop of its core, along one axis."""
    if length <= tile:
        return [(-((tile - length) // 2), 0, length)]
    count = -(-(length - overlap) // (tile - overlap))
    starts = [index * (length - tile) // (count - 1) for index in range(count)]
    # Cores meet in the middle of the overlap of two neighbours.
    between = [(left + tile + right) // 2 for left, right in itertools.pairwise(starts)]
    return list(zip(starts, [0, *between], [*between, length], strict=True))
