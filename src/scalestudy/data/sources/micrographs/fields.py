"""Random fields over an image, that look alike at every resolution."""

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

Field = npt.NDArray[np.float32]
Size = tuple[int, int]


def unit(size: Size) -> float:
    """Pixels of one unit of length: the height of a 4:3 image that fits inside `size`."""
    return min(float(size[0]), 0.75 * size[1])


def uniform(draw: np.random.Generator, bounds: tuple[float, float]) -> float:
    """One draw between two bounds."""
    return float(draw.uniform(*bounds))


def stretched(field: npt.NDArray[Any], size: Size, smooth: bool = True) -> Field:
    """A field resampled to `size`, cubic if `smooth`, else linear."""
    method = Image.Resampling.BICUBIC if smooth else Image.Resampling.BILINEAR
    picture = Image.fromarray(np.ascontiguousarray(field, np.float32))
    resized: Field = np.array(picture.resize((size[1], size[0]), method))
    return resized


def smooth_noise(draw: np.random.Generator, size: Size, cells: float) -> Field:
    """Normal noise of about `cells` bumps over a unit of length, standard deviation about 1."""
    # White noise on a grid of that many cells would show the grid; a finer one, smoothed, does not.
    scale = 2 * cells / unit(size)
    rows, columns = max(2, round(size[0] * scale)), max(2, round(size[1] * scale))
    noise = draw.standard_normal((rows + 4, columns + 4), dtype=np.float32)
    for _ in range(2):
        noise = noise[:-2] + 2 * noise[1:-1] + noise[2:]
        noise = noise[:, :-2] + 2 * noise[:, 1:-1] + noise[:, 2:]
    return stretched(noise * np.float32(1 / 70), size)


def coordinates(size: Size) -> tuple[Field, Field]:
    """Columns y [H, 1] and rows x [1, W] of pixel centres, in units of length."""
    scale = np.float32(1 / unit(size))
    y = (np.arange(size[0], dtype=np.float32) + np.float32(0.5)) * scale
    x = (np.arange(size[1], dtype=np.float32) + np.float32(0.5)) * scale
    return y[:, None], x[None, :]
