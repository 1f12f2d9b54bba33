"""Cut large images into tiles, and put the outputs of tiles together.

This is the overlap-tile strategy of Ronneberger, Fischer and Brox, "U-Net" (2015): a tile has a margin of
context around its core, and only the core counts. The cores of an image's tiles contain each pixel once.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
        rows = slice(top - self.top, bottom - self.top)
        columns = slice(left - self.left, right - self.left)
        return rows, columns

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
    height, width = size
    tile_height, tile_width = tile
    rows = _along(height, tile_height, overlap)
    columns = _along(width, tile_width, overlap)
    tiles = []
    for row, column in itertools.product(rows, columns):
        core = (
            row.core_start,
            column.core_start,
            row.core_stop,
            column.core_stop,
        )
        tile_at = Tile(row.start, column.start, core)
        tiles.append(tile_at)
    return tiles


def cut(
    image: Array,
    tile: Tile,
    size: Size,
    fill: int = 0,
) -> Array:
    """Cut a tile of this size out of an image [H, W, ...]; pixels outside the image are `fill`."""
    height, width = image.shape[:2]
    tile_height, tile_width = size
    bottom = tile.top + tile_height
    right = tile.left + tile_width
    # A negative start would count from the end of the image.
    top = max(tile.top, 0)
    left = max(tile.left, 0)
    inside = image[top:bottom, left:right]
    if inside.shape[:2] == size:
        return inside  # a view: most tiles need no copy
    above = top - tile.top
    below = max(bottom - height, 0)
    before = left - tile.left
    after = max(right - width, 0)
    other_axes = [(0, 0)] * (image.ndim - 2)
    around = [
        (above, below),
        (before, after),
        *other_axes,
    ]
    return np.pad(inside, around, constant_values=fill)


def cut_mask(mask: Array, tile: Tile, size: Size) -> Array:
    """Cut a tile out of a mask [H, W]; outside its core it is 255, which is ignored."""
    whole = np.full(size, IGNORE, mask.dtype)
    whole[tile.core_inside] = mask[tile.core_in_image]
    return whole


def stitch(
    parts: Sequence[Array],
    tiles: Sequence[Tile],
    size: Size,
) -> Array:
    """Assemble an image [H, W, ...] from the cores of parts [h, w, ...], one for each tile.

    Raises:
        ValueError: If the numbers of parts and tiles differ.
    """
    first = parts[0]
    shape = (*size, *first.shape[2:])
    # Not filled: the cores cover every pixel.
    whole = np.empty(shape, first.dtype)
    for part, tile in zip(parts, tiles, strict=True):
        whole[tile.core_in_image] = part[tile.core_inside]
    return whole


class _Interval(NamedTuple):
    """A tile along one axis: where it starts, and where its core starts and stops."""

    start: int
    core_start: int
    core_stop: int


def _along(length: int, tile: int, overlap: int) -> list[_Interval]:
    if length <= tile:
        margin = (tile - length) // 2
        return [_Interval(-margin, 0, length)]
    step = tile - overlap
    count = math.ceil((length - overlap) / step)
    last = length - tile
    # In integers, so that the first tile begins and the last ends exactly with the image.
    steps = count - 1
    starts = [index * last // steps for index in range(count)]
    intervals = []
    core_start = 0
    for start, following in itertools.pairwise(starts):
        # Cores meet in the middle of the overlap of two neighbours.
        core_stop = (start + tile + following) // 2
        intervals.append(_Interval(start, core_start, core_stop))
        core_start = core_stop
    intervals.append(_Interval(last, core_start, length))
    return intervals
