"""Geometric transformation of images: source coordinates of pixels, and sampling."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from scalestudy.data.loading.augment.parameters import Floats
from scalestudy.data.types import Array, Size

MODE = "mirror"
"""SciPy's name for continuing an image by reflection about the center of its last pixel."""


def coordinates(matrix: Floats | None, displacement: Floats | None, size: Size) -> Floats:
    """Return the source rows and columns of the pixels of an image, shape [2, H, W].

    Args:
        matrix: Affine matrix [2, 3] about the center; see `Parameters`.
        displacement: Displacements in pixels at the nodes of a grid, shape [2, g, g]; interpolated
            bicubically.
        size: Height and width.
    """
    down, across = (np.arange(length) - (length - 1) / 2 for length in size)
    turn = np.eye(2, 3) if matrix is None else matrix
    centre = np.array([(length - 1) / 2 for length in size])
    # Add the contributions of row and column: cheaper than a matrix product for each pixel.
    rows = turn[:, 0, None] * down + (turn[:, 2] + centre)[:, None]
    grid = rows[:, :, None] + (turn[:, 1, None] * across)[:, None, :]
    if displacement is not None:
        nodes = displacement.shape[-1]
        grid += bicubic(size[0], nodes) @ displacement @ bicubic(size[1], nodes).T
    moved: Floats = grid
    return moved


def whole(matrix: Floats, size: Size) -> bool:
    """Whether the matrix maps pixels to pixels: only right angles and reflections."""
    square = bool((np.abs(matrix[:, :2]) == np.eye(2)).all()) or size[0] == size[1]
    return square and not matrix[:, 2].any() and bool(np.isin(matrix[:, :2], (-1.0, 0.0, 1.0)).all())


def turned(pixels: Array, matrix: Floats) -> Array:
    """Rotate and flip pixels [H, W, ...] by a matrix that is `whole`, without interpolation."""
    if matrix[0, 0] == 0:  # rows become columns
        pixels = pixels.swapaxes(0, 1)
        return pixels[:: int(matrix[1, 0]), :: int(matrix[0, 1])]
    return pixels[:: int(matrix[0, 0]), :: int(matrix[1, 1])]


def sampled(image: Array, at: Floats) -> npt.NDArray[np.float32]:
    """Sample an image [H, W, C] bilinearly at rows and columns [2, H, W]; returns [H, W, C]."""
    out = np.empty(image.shape, np.float32)
    for channel in range(image.shape[2]):
        ndimage.map_coordinates(
            image[:, :, channel], at, out[:, :, channel], order=1, mode=MODE, prefilter=False
        )
    return out


def nearest(mask: Array, at: Floats) -> Array:
    """Sample a mask [H, W] at the nearest pixels; halfway between two, at the one with even index."""
    rows, columns = (
        mirrored(np.rint(index).astype(np.int64), length)
        for index, length in zip(at, mask.shape, strict=True)
    )
    taken: Array = mask.reshape(-1).take(rows * mask.shape[1] + columns)
    return taken


def mirrored(index: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.int64]:
    """Reflect indices into 0..length-1 about the centers of the first and the last pixel."""
    if length == 1:
        return np.zeros_like(index)
    period = 2 * (length - 1)
    index = np.abs(index)
    if index.max(initial=0) >= period:
        index %= period
    reflected: npt.NDArray[np.int64] = np.minimum(index, period - index)
    return reflected


@lru_cache(maxsize=16)
def bicubic(length: int, nodes: int) -> Floats:
    """Return the interpolation weights of `nodes` values, evenly spaced over the pixels: [length, nodes].

    This is Keys's cubic convolution with a = -1/2 ("Cubic convolution interpolation for digital image
    processing", 1981). Beyond the ends the last value is repeated.
    """
    at = np.linspace(0, nodes - 1, length)
    weights = np.zeros((length, nodes))
    for offset in range(-1, 3):
        node = np.floor(at).astype(int) + offset
        distance = np.abs(at - node)
        near = 1.5 * distance**3 - 2.5 * distance**2 + 1
        far = -0.5 * distance**3 + 2.5 * distance**2 - 4 * distance + 2
        weight = np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))
        np.add.at(weights, (np.arange(length), np.clip(node, 0, nodes - 1)), weight)
    weights.setflags(write=False)
    return weights
