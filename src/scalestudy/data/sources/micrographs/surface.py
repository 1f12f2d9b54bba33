"""The surface that is indented: light, grains, polishing marks and fine texture."""

import numpy as np

from scalestudy.data.sources.micrographs.fields import (
    Field,
    Size,
    coordinates,
    smooth_noise,
    stretched,
    uniform,
    unit,
)
from scalestudy.data.sources.micrographs.instruments import Instrument

_FINEST = 384
"""Rows of the grid that light and texture are made on; finer detail comes with the noise."""


def make_light(draw: np.random.Generator, kind: Instrument, size: Size) -> Field:
    """Brightness [H, W] of a featureless surface under this instrument."""
    coarse = _grid(size, 64)
    y, x = coordinates(coarse)
    y, x = y - y.mean(), x - x.mean()
    angle, amplitude = uniform(draw, (0, 2 * np.pi)), uniform(draw, kind.light)
    light = amplitude * (np.cos(angle) * x + np.sin(angle) * y)
    light = light + 0.35 * amplitude * smooth_noise(draw, coarse, 2.0)
    light = light - kind.vignette * uniform(draw, (0.5, 1.2)) * (x * x + y * y)
    return stretched(light + uniform(draw, kind.brightness), size)


def make_texture(draw: np.random.Generator, kind: Instrument, size: Size) -> Field:
    """Deviations [H, W] of brightness from that of a featureless surface."""
    grid = _grid(size, _FINEST)
    mottle = uniform(draw, kind.mottle)
    texture = mottle * (0.7 * smooth_noise(draw, grid, 14.0) + 0.7 * smooth_noise(draw, grid, 60.0))
    texture += _grains(draw, kind, grid)
    marks = uniform(draw, kind.marks)
    if marks > 0.01:
        texture += marks * _polishing(draw, grid)
    return stretched(texture, size, smooth=False)


def _grains(draw: np.random.Generator, kind: Instrument, size: Size) -> Field:
    """Voronoi cells with wavy boundaries, each of its own grey."""
    tone, boundary = uniform(draw, kind.grains), uniform(draw, kind.boundaries)
    cells = int(draw.integers(14, 45))
    coarse = _grid(size, 160)
    y, x = coordinates(coarse)
    waviness = uniform(draw, (0.004, 0.014))
    points = np.stack(
        [
            (y + waviness * smooth_noise(draw, coarse, 11.0)).ravel(),
            (x + waviness * smooth_noise(draw, coarse, 11.0)).ravel(),
        ],
        axis=1,
    )
    span = np.array([coarse[0], coarse[1]], np.float32) / np.float32(unit(coarse))
    seeds = draw.random((cells, 2), dtype=np.float32) * span
    squares = (points[:, :1] - seeds[:, 0]) ** 2
    squares += (points[:, 1:] - seeds[:, 1]) ** 2
    nearest = squares.argmin(axis=1)
    rows = np.arange(len(points))
    first = squares[rows, nearest].copy()
    squares[rows, nearest] = np.inf
    # The difference of the squares grows linearly with the distance from the boundary.
    gap = (squares.min(axis=1) - first) * np.sqrt(cells)
    tones = draw.standard_normal(cells, dtype=np.float32) * np.float32(0.6 * tone)
    grains = tones[nearest] - np.float32(boundary) * np.exp(-np.square(gap / np.float32(0.018)))
    return stretched(grains.reshape(coarse), size, smooth=False)


def _polishing(draw: np.random.Generator, size: Size) -> Field:
    """Parallel marks in one or two directions."""
    y, x = coordinates(size)
    marks = np.zeros(size, np.float32)
    for strength in (0.8, uniform(draw, (0.0, 0.5))):
        angle = uniform(draw, (0, np.pi))
        profile = draw.standard_normal(4096, dtype=np.float32)
        profile = 0.6 * profile + 0.8 * np.repeat(draw.standard_normal(512, dtype=np.float32), 8)
        along = (np.cos(angle) * x + np.sin(angle) * y) * np.float32(420) + np.float32(2048)
        marks += np.float32(strength) * np.take(profile, along.astype(np.int32), mode="clip")
    fading = 0.6 + 0.4 * smooth_noise(draw, size, 3.0)
    return marks * fading


def _grid(size: Size, most: int) -> Size:
    """A grid of the same shape with at most `most` rows and about as many columns."""
    factor = min(1.0, most / unit(size))
    return (max(2, round(size[0] * factor)), max(2, round(size[1] * factor)))
