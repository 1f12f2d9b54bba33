"""Synthetic electron micrographs of an indent in a polished surface, with masks.

An image depends on its seed, its number and nothing else; other sizes show the same scene. Brightness runs
from 0 to 1, lengths are in heights of a 4:3 image that fits inside the picture, angles in radians.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from scalestudy.data.types import Array, Size

Field = npt.NDArray[np.float32]
Pixels = npt.NDArray[np.uint8]
Generator = np.random.Generator

BRIGHTNESS = (0.25, 0.75)
"""Of the polished surface."""
CONTRAST = (0.13, 0.38)
"""Amplitude of the faces of an indent."""
BLUR = (0.001, 0.004)
SHOT_NOISE = (0.03, 0.15)
"""Standard deviation of the noise at brightness 1; it grows with the root of brightness."""
LINE_NOISE = (0.0, 0.015)
"""Standard deviation of the offsets of scan lines."""
_FINEST = 384
"""Rows of the grid that light and texture are made on; finer detail comes with the noise."""
_NEUTRAL = 128
_DEPTH = 0.6
"""Brightness that full black or white of drawn defects stands for."""


def make_micrograph(seed: int, index: int, size: Size) -> tuple[Pixels, Pixels]:
    """Micrograph number `index` under `seed`: an image [H, W] and its mask [H, W] of 0 and 1."""
    draw = np.random.default_rng([seed, index, 0])
    triangle = Triangle.random(draw, size)
    image = _light(draw, size)
    texture = _texture(draw, size) + _defects(draw, size)
    mask = _indent(draw, triangle, image, texture)
    image = _record(draw, np.random.default_rng([seed, index, 1]), image)
    return (image.clip(0, 1) * np.float32(255) + np.float32(0.5)).astype(np.uint8), mask


@dataclass(frozen=True)
class Window:
    """The part of an image around an indent.

    Attributes:
        rows: Its rows in the image.
        columns: Its columns.
        distances: Of its pixels to the three sides in inradii, negative inside, shape [3, h, w].
        along: Position along each side, from -1 to 1 between its corners, shape [3, h, w].
        outline: The largest of the distances, shape [h, w].
    """

    rows: slice
    columns: slice
    distances: Field
    along: Field
    outline: Field


@dataclass(frozen=True)
class Triangle:
    """Outline of the indent of a three-sided pyramid (as of a Berkovich tip). Lengths in pixels.

    Attributes:
        centre: Row and column.
        inradius: Of the undistorted triangle.
        rotation: Direction of its first side.
        stretch: Ratio of the axes, from a tilted view.
        tilt: Direction of the stretch.
        bow: How far the middle of each side is drawn in, in inradii.
    """

    centre: tuple[float, float]
    inradius: float
    rotation: float
    stretch: float
    tilt: float
    bow: tuple[float, float, float]

    @classmethod
    def random(cls, draw: Generator, size: Size) -> "Triangle":
        """A triangle that lies inside an image of `size`."""
        inradius = draw.uniform(0.075, 0.2) * _unit(size)
        reach = 2.15 * inradius
        places = draw.random(2)
        centre = [
            float(reach + place * (length - 2 * reach)) if length > 2 * reach else length / 2
            for place, length in zip(places, size, strict=True)
        ]
        bow = draw.uniform(-0.05, 0.05, 3) + draw.uniform(-0.02, 0.12)
        return cls(
            centre=(centre[0], centre[1]),
            inradius=inradius,
            rotation=draw.uniform(0, 2 * np.pi),
            stretch=draw.uniform(0.85, 1.15),
            tilt=draw.uniform(0, np.pi),
            bow=(float(bow[0]), float(bow[1]), float(bow[2])),
        )

    def window(self, size: Size, reach: float = 2.8) -> Window:
        """Distances in the square of `reach` inradii around the centre."""
        top, left = (max(0, int(middle - reach * self.inradius)) for middle in self.centre)
        bottom, right = (
            min(length, int(middle + reach * self.inradius) + 1)
            for middle, length in zip(self.centre, size, strict=True)
        )
        y = (np.arange(top, bottom, dtype=np.float32) + np.float32(0.5 - self.centre[0]))[:, None]
        x = (np.arange(left, right, dtype=np.float32) + np.float32(0.5 - self.centre[1]))[None, :]
        shape = (3, bottom - top, right - left)
        distances, along = np.empty(shape, np.float32), np.empty(shape, np.float32)
        linear = self._linear() / np.float32(self.inradius)
        for side in range(3):
            angle = self.rotation + side * 2 * np.pi / 3
            normal = np.array([np.sin(angle), np.cos(angle)], np.float32) @ linear
            tangent = np.array([np.cos(angle), -np.sin(angle)], np.float32) @ linear / np.float32(np.sqrt(3))
            along[side] = tangent[0] * y + tangent[1] * x
            drawn_in = np.float32(self.bow[side]) * (1 - np.square(along[side])).clip(0)
            distances[side] = normal[0] * y + normal[1] * x - 1 + drawn_in
        return Window(slice(top, bottom), slice(left, right), distances, along, distances.max(axis=0))

    def _linear(self) -> Field:
        """The map of area 1 from the image to the upright triangle."""
        cos, sin = np.cos(self.tilt), np.sin(self.tilt)
        turn = np.array([[cos, -sin], [sin, cos]])
        scale = np.diag([np.sqrt(self.stretch), 1 / np.sqrt(self.stretch)])
        linear: Field = (turn.T @ scale @ turn).astype(np.float32)
        return linear


def _indent(draw: Generator, triangle: Triangle, image: Field, texture: Field) -> Pixels:
    """Press the indent into `image` (light alone), adding `texture` in place; returns the mask."""
    size = (image.shape[0], image.shape[1])
    window = triangle.window(size)
    inside, outside = _relief(draw, window, draw.uniform(*CONTRAST))
    within = (np.float32(0.5) - window.outline * np.float32(triangle.inradius)).clip(0, 1)
    part = (window.rows, window.columns)
    texture[part] *= 1 - np.float32(1 - draw.uniform(0.2, 0.7)) * within
    image += texture
    image[part] += outside + (inside - outside) * within
    mask = np.zeros(size, np.uint8)
    mask[part] = window.outline < 0
    return mask


def _relief(draw: Generator, window: Window, contrast: float) -> tuple[Field, Field]:
    """Brightness that the indent adds, inside and outside of its outline: two fields [h, w]."""
    distances, outline = window.distances, window.outline
    sun = draw.uniform(0, 2 * np.pi)
    # Faces turned to the light are brighter than the surface, the others darker: no one threshold fits.
    tones = contrast * (
        0.9 * np.cos(sun + np.arange(3) * 2 * np.pi / 3) + draw.uniform(-1.3, -0.2)
    ).astype(np.float32)  # fmt: skip
    second, third = outline == distances[1], outline == distances[2]
    one, other, last = distances
    second_largest = np.maximum(np.minimum(one, other), np.minimum(np.maximum(one, other), last))
    ridge = np.exp((second_largest - outline) * np.float32(draw.uniform(12, 40)))
    inside = np.where(third, tones[2], np.where(second, tones[1], tones[0]))
    inside += np.float32(draw.uniform(-0.2, 0.7) * contrast) * ridge
    inside += np.float32(draw.uniform(-0.1, 0.8) * contrast) * ((1 + outline).clip(0, 1) - np.float32(0.6))
    side = np.where(third, window.along[2], np.where(second, window.along[1], window.along[0]))
    bulge = np.exp(-np.square(side / np.float32(draw.uniform(0.35, 0.7))))
    width = np.float32(draw.uniform(0.06, 0.3))
    pile_up = np.float32(draw.uniform(-0.4, 1.6) * contrast)
    outside = pile_up * bulge * np.exp(-np.square((outline - width) / width))
    edge = np.float32(draw.uniform(-0.1, 1.0) * contrast)
    outside += edge * np.exp(-np.abs(outline) * np.float32(draw.uniform(18, 45)))
    return inside + edge * np.exp(outline.clip(None, 0) * np.float32(30)), outside


def _light(draw: Generator, size: Size) -> Field:
    """Brightness [H, W] of a featureless surface."""
    grid = _grid(size, 64)
    y, x = _coordinates(grid)
    y, x = y - y.mean(), x - x.mean()
    angle, amplitude = draw.uniform(0, 2 * np.pi), draw.uniform(0.02, 0.11)
    light = amplitude * (np.cos(angle) * x + np.sin(angle) * y)
    light = light + 0.35 * amplitude * _smooth_noise(draw, grid, 2.0)
    light = light - draw.uniform(0.02, 0.2) * (x * x + y * y)
    return _stretched(light + draw.uniform(*BRIGHTNESS), size)


def _texture(draw: Generator, size: Size) -> Field:
    """Deviations [H, W] of brightness from that of a featureless surface: stains, grains, polishing marks."""
    grid = _grid(size, _FINEST)
    texture = draw.uniform(0.007, 0.035) * (
        0.7 * _smooth_noise(draw, grid, 14.0) + 0.7 * _smooth_noise(draw, grid, 60.0)
    )
    texture += _grains(draw, grid)
    texture += draw.uniform(0.0, 0.05) * _polishing(draw, grid)
    return _stretched(texture, size, smooth=False)


def _grains(draw: Generator, size: Size) -> Field:
    """Voronoi cells with wavy boundaries, each of its own grey."""
    tone, boundary, waviness = draw.uniform(0.0, 0.1), draw.uniform(0.0, 0.08), draw.uniform(0.004, 0.014)
    grid = _grid(size, 160)
    y, x = _coordinates(grid)
    points = np.stack(
        [(axis + waviness * _smooth_noise(draw, grid, 11.0)).ravel() for axis in (y, x)], axis=1
    )
    span = np.array(grid, np.float32) / np.float32(_unit(grid))
    seeds = draw.random((int(draw.integers(14, 45)), 2), dtype=np.float32) * span
    squares = (points[:, :1] - seeds[:, 0]) ** 2
    squares += (points[:, 1:] - seeds[:, 1]) ** 2
    nearest = squares.argmin(axis=1)
    rows = np.arange(len(points))
    first = squares[rows, nearest].copy()
    squares[rows, nearest] = np.inf
    # The difference of the squares grows linearly with the distance from the boundary.
    gap = (squares.min(axis=1) - first) * np.sqrt(len(seeds))
    tones = draw.standard_normal(len(seeds), dtype=np.float32) * np.float32(0.6 * tone)
    grains = tones[nearest] - np.float32(boundary) * np.exp(-np.square(gap / np.float32(0.018)))
    return _stretched(grains.reshape(grid), size, smooth=False)


def _polishing(draw: Generator, size: Size) -> Field:
    """Parallel marks in two directions."""
    y, x = _coordinates(size)
    marks = np.zeros(size, np.float32)
    for strength in (0.8, draw.uniform(0.0, 0.5)):
        angle = draw.uniform(0, np.pi)
        profile = draw.standard_normal(4096, dtype=np.float32)
        along = (np.cos(angle) * x + np.sin(angle) * y) * np.float32(420) + np.float32(2048)
        marks += np.float32(strength) * np.take(profile, along.astype(np.int32), mode="clip")
    return marks * (0.6 + 0.4 * _smooth_noise(draw, size, 3.0))


def _defects(draw: Generator, size: Size) -> Field:
    """Deviations of brightness [H, W] by stains, scratches, pores and dust."""
    picture = Image.new("L", (size[1], size[0]), _NEUTRAL)
    pen = ImageDraw.Draw(picture)
    for _ in range(int(draw.integers(0, 4))):
        _spot(draw, pen, size, (0.03, 0.085), (-0.3, -0.06))
    for _ in range(int(draw.integers(0, 10))):
        _scratch(draw, pen, size)
    for _ in range(int(draw.integers(5, 30))):
        _spot(draw, pen, size, (0.002, 0.014), (-0.5, -0.1))
    for _ in range(int(draw.integers(0, 5))):
        _spot(draw, pen, size, (0.003, 0.012), (0.1, 0.45))
    defects: Field = (np.asarray(picture, np.float32) - _NEUTRAL) * np.float32(_DEPTH / 127)
    return defects


def _spot(
    draw: Generator,
    pen: ImageDraw.ImageDraw,
    size: Size,
    radii: tuple[float, float],
    tones: tuple[float, float],
) -> None:
    """An irregular blob of a radius between `radii`."""
    radius = np.exp(draw.uniform(*np.log(radii))) * _unit(size)
    centre = draw.random(2) * size
    angles = np.arange(14) * (2 * np.pi / 14)
    radial = radius * (1 + 0.15 * draw.standard_normal(14))
    squeeze, turn = draw.uniform(0.55, 1.0), draw.uniform(0, np.pi)
    a, b = radial * np.cos(angles), squeeze * radial * np.sin(angles)
    xs = centre[1] + a * np.cos(turn) - b * np.sin(turn)
    ys = centre[0] + a * np.sin(turn) + b * np.cos(turn)
    pen.polygon(list(zip(xs, ys, strict=True)), fill=_ink(draw.uniform(*tones)))


def _scratch(draw: Generator, pen: ImageDraw.ImageDraw, size: Size) -> None:
    """A slightly bent line, dark with a bright lip or the other way round."""
    scale = _unit(size)
    start = draw.random(2) * size
    steps = np.linspace(0, 1, 9)
    length = draw.uniform(0.1, 1.4) * scale
    turns = draw.uniform(0, 2 * np.pi) + draw.uniform(-0.15, 0.15) * steps
    xs, ys = start[1] + length * steps * np.cos(turns), start[0] + length * steps * np.sin(turns)
    exact = draw.uniform(0.0008, 0.005) * scale
    tone = draw.uniform(0.05, 0.28) * (1 if draw.random() < 0.4 else -1) * min(1.0, max(0.4, exact))
    width = max(1, round(exact))
    pen.line(list(zip(xs + width, ys + width, strict=True)), fill=_ink(-0.5 * tone), width=width)
    pen.line(list(zip(xs, ys, strict=True)), fill=_ink(tone), width=width)


def _ink(amplitude: float) -> int:
    return round(_NEUTRAL + 127 * max(-1.0, min(1.0, amplitude / _DEPTH)))


def _record(draw: Generator, noise: Generator, image: Field) -> Field:
    """Blur of the optics, shot noise of the detector, offsets of scan lines, and gain."""
    unit = _unit((image.shape[0], image.shape[1]))
    radius = draw.uniform(*BLUR) * unit
    # A smaller image stands for one scaled down, whose pixels average some of the noise away.
    quiet = min(1.0, (unit / 768) ** 0.4)
    shot, line = quiet * draw.uniform(*SHOT_NOISE), quiet * draw.uniform(*LINE_NOISE)
    gain, offset = draw.uniform(0.9, 1.1), draw.uniform(-0.03, 0.03)
    image = image.clip(0.02, 1)
    if radius > 0.25:
        picture = Image.fromarray((image * np.float32(255)).astype(np.uint8))
        image = np.asarray(picture.filter(ImageFilter.GaussianBlur(radius)), np.float32) * np.float32(1 / 255)
    recorded: Field = noise.standard_normal(image.shape, dtype=np.float32)
    recorded *= np.sqrt(image)
    recorded *= np.float32(shot * gain)
    recorded += np.float32(gain) * image + np.float32(offset)
    recorded += noise.standard_normal((len(image), 1), dtype=np.float32) * np.float32(line)
    return recorded


def _unit(size: Size) -> float:
    """Pixels of one unit of length: the height of a 4:3 image that fits inside `size`."""
    return min(float(size[0]), 0.75 * size[1])


def _grid(size: Size, most: int) -> Size:
    """A grid of the same shape with at most `most` rows and about as many columns."""
    factor = min(1.0, most / _unit(size))
    return (max(2, round(size[0] * factor)), max(2, round(size[1] * factor)))


def _stretched(field: Array, size: Size, smooth: bool = True) -> Field:
    """A field resampled to `size`, cubic if `smooth`, else linear."""
    method = Image.Resampling.BICUBIC if smooth else Image.Resampling.BILINEAR
    picture = Image.fromarray(np.ascontiguousarray(field, np.float32))
    resized: Field = np.array(picture.resize((size[1], size[0]), method))
    return resized


def _smooth_noise(draw: Generator, size: Size, cells: float) -> Field:
    """Normal noise of about `cells` bumps over a unit of length, standard deviation about 1."""
    # White noise on a grid of that many cells would show the grid; a finer one, smoothed, does not.
    scale = 2 * cells / _unit(size)
    rows, columns = max(2, round(size[0] * scale)), max(2, round(size[1] * scale))
    noise = draw.standard_normal((rows + 4, columns + 4), dtype=np.float32)
    for _ in range(2):
        noise = noise[:-2] + 2 * noise[1:-1] + noise[2:]
        noise = noise[:, :-2] + 2 * noise[:, 1:-1] + noise[:, 2:]
    return _stretched(noise * np.float32(1 / 70), size)


def _coordinates(size: Size) -> tuple[Field, Field]:
    """Columns y [H, 1] and rows x [1, W] of pixel centres, in units of length."""
    scale = np.float32(1 / _unit(size))
    y = (np.arange(size[0], dtype=np.float32) + np.float32(0.5)) * scale
    x = (np.arange(size[1], dtype=np.float32) + np.float32(0.5)) * scale
    return y[:, None], x[None, :]
