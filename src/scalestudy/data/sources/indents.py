"""The source "indents": synthetic micrographs of an indent in a polished surface, with masks.

They serve studies without own data. An image depends only on the seed and its number; other sizes show the
same scene. Brightness is in [0, 1], lengths are relative to the height of the largest 4:3 image that fits
inside the picture, angles are in radians.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from scalestudy.config.settings import DataSettings
from scalestudy.data.samples import Kind, Sample, Size
from scalestudy.data.sources.source import (
    OF_FILES,
    Contents,
    digest,
    refuse_unused,
    side_by_side,
)
from scalestudy.util.errors import UserError

DEFAULT_COUNT = 240
DEFAULT_SIZE = (768, 1024)
LEAST_SIZE = 16
_VERSION = 4
"""Increased with every change of the images, so that existing sets are prepared again."""
_FINEST = 384
"""Rows of the grid of the surface texture; noise adds finer detail."""

_BLOTS = (
    (4, (0.03, 0.085), (-0.3, -0.06)),
    (30, (0.002, 0.014), (-0.5, -0.1)),
    (5, (0.003, 0.012), (0.1, 0.45)),
)
"""Stains, pores and dust: one more than the most of them, and the ranges of their radii and brightness."""

Field = npt.NDArray[np.float32]
Pixels = npt.NDArray[np.uint8]
Generator = np.random.Generator


class Indents:
    """Source of synthetic micrographs, each with a triangular indent: "indents" or "indents:COUNT"."""

    kind: Kind = "masks"
    label = "indents"

    def __init__(self, argument: str | None, data: DataSettings) -> None:
        if argument is not None and (not argument.isdecimal() or int(argument) < 2):
            raise UserError(
                '"indents:COUNT" with a count of at least 2',
                f"'indents:{argument}'",
                'Write "indents:240".',
            )
        self._count = DEFAULT_COUNT if argument is None else int(argument)
        self._size = data.image_size or DEFAULT_SIZE
        self._seed = data.seed
        refuse_unused(data, OF_FILES, "indents, which are synthetic")
        if min(self._size) < LEAST_SIZE:
            raise UserError(
                f"an image_size of at least {LEAST_SIZE} x {LEAST_SIZE} pixels for indents",
                f"{self._size[0]} x {self._size[1]}",
                "Choose a larger `image_size` under [data].",
            )
        self.known_classes = len(self.class_names())
        self.identity = f"indents:{self._count}"
        self.fingerprint = digest(
            "indents", _VERSION, self._count, self._size, data.seed
        )

    def contents(self) -> Contents:
        return Contents(
            self._count, (*self._size, 1), np.dtype(np.uint8), 1 / 255, None, {}
        )

    def rows(self) -> Iterator[Sample]:
        return side_by_side(self._row, range(self._count))

    def class_names(self) -> list[str]:
        return ["background", "indent"]

    def _row(self, index: int) -> Sample:
        image, mask = make_micrograph(self._seed, index, self._size)
        return image[:, :, None], mask


def make_micrograph(seed: int, index: int, size: Size) -> tuple[Pixels, Pixels]:
    """Draw micrograph number `index` of a seed: an image [H, W] and its mask [H, W] of 0 and 1."""
    shape, surface, defects, noise = (
        np.random.default_rng([seed, index, part]) for part in range(4)
    )
    mask, relief = _indent(shape, size)
    texture = _texture(surface, size) + _defects(defects, size)
    strength = np.where(mask, np.float32(0.5), np.float32(1))
    image = _light(surface, size) + texture * strength + relief
    recorded = _record(noise, image).clip(0, 1)
    return (recorded * 255 + np.float32(0.5)).astype(np.uint8), mask


def _indent(draw: Generator, size: Size) -> tuple[Pixels, Field]:
    """Return mask and brightness of the indent of a three-sided pyramid (a Berkovich tip), both [H, W]."""
    inradius, contrast = draw.uniform(0.075, 0.2), draw.uniform(0.15, 0.38)
    y, x = _around_centre(draw, size, inradius)
    distances, along = _sides(draw, y, x)
    outline = np.maximum(np.maximum(distances[0], distances[1]), distances[2])
    faces = [outline == distance for distance in distances]
    inside = _faces(draw, faces, distances, outline)
    middle = np.exp(-np.square(np.select(faces, along) / np.float32(0.5)))
    width = np.float32(draw.uniform(0.06, 0.3))
    height = np.float32(draw.uniform(-0.4, 1.6))
    pile_up = height * middle * np.exp(-np.square((outline - width) / width))
    sharpness = np.float32(draw.uniform(-0.1, 1.0))
    edge = sharpness * np.exp(-np.abs(outline) * np.float32(30))
    # One pixel wide, so that the outline is not jagged.
    pixels = np.float32(inradius * _unit(size))
    within = (np.float32(0.5) - outline * pixels).clip(0, 1)
    relief = np.float32(contrast) * (within * inside + (1 - within) * pile_up + edge)
    return (outline < 0).astype(np.uint8), relief.astype(np.float32)


def _around_centre(draw: Generator, size: Size, inradius: float) -> tuple[Field, Field]:
    """Return rows and columns from the centre of an indent, in inradii, which lies inside if there is room."""
    reach, height_width = 2.15 * inradius, np.array(size) / _unit(size)
    room = height_width - 2 * reach
    drawn = reach + draw.random(2) * room
    centre = np.where(room > 0, drawn, height_width / 2)
    y, x = _coordinates(size)
    scale = np.float32(inradius)
    y = (y - np.float32(centre[0])) / scale
    x = (x - np.float32(centre[1])) / scale
    return y, x


def _sides(draw: Generator, y: Field, x: Field) -> tuple[list[Field], list[Field]]:
    """Return the distances to three sides in inradii, negative inside, and the places along each side.

    The sides are bent inwards in the middle.
    """
    rotation = draw.uniform(0, 2 * np.pi)
    bow = draw.uniform(-0.05, 0.15, 3).astype(np.float32)
    angles = rotation + np.arange(3) * 2 * np.pi / 3 + draw.uniform(-0.12, 0.12, 3)
    sines = np.sin(angles).astype(np.float32)
    cosines = np.cos(angles).astype(np.float32)
    half_side = np.float32(np.sqrt(3))
    distances, along = [], []
    for side in range(3):
        place = (cosines[side] * y - sines[side] * x) / half_side
        bent = bow[side] * (1 - np.square(place)).clip(0)
        distances.append(sines[side] * y + cosines[side] * x - 1 + bent)
        along.append(place)
    return distances, along


def _faces(
    draw: Generator,
    faces: list[npt.NDArray[np.bool_]],
    distances: list[Field],
    outline: Field,
) -> Field:
    """Return the brightness of the three faces, with the ridges between them."""
    nearest = np.minimum(np.minimum(distances[0], distances[1]), distances[2])
    second = sum(distances) - outline - nearest
    # Faces towards the light are brighter than the surface, others darker: no single threshold fits.
    sun = draw.uniform(0, 2 * np.pi)
    light = np.cos(sun + np.arange(3) * 2 * np.pi / 3)
    tones = 0.9 * light + draw.uniform(-1.3, -0.2)
    strength = draw.uniform(-0.2, 0.7)
    steepness = np.float32(draw.uniform(12, 40))
    ridge = strength * np.exp((second - outline) * steepness)
    inside: Field = np.select(faces, list(tones.astype(np.float32)))
    brightness: Field = inside + ridge.astype(np.float32)
    return brightness


def _light(draw: Generator, size: Size) -> Field:
    """Return the brightness [H, W] of a featureless surface."""
    grid = _grid(size, 64)
    y, x = (axis - axis.mean() for axis in _coordinates(grid))
    angle, amplitude = draw.uniform(0, 2 * np.pi), draw.uniform(0.02, 0.11)
    slope = np.cos(angle) * x + np.sin(angle) * y
    light = amplitude * (slope + 0.35 * _smooth_noise(draw, grid, 2.0))
    base, vignette = draw.uniform(0.25, 0.75), draw.uniform(0.02, 0.2)
    return _stretch(light + base - vignette * (x * x + y * y), size)


def _texture(draw: Generator, size: Size) -> Field:
    """Return brightness deviations [H, W] by stains, polishing marks and grains of different grey."""
    from scipy.spatial import KDTree

    grid = _grid(size, _FINEST)
    coarse_stains = 0.7 * _smooth_noise(draw, grid, 14.0)
    stains = coarse_stains + 0.7 * _smooth_noise(draw, grid, 60.0)
    texture = draw.uniform(0.007, 0.035) * stains
    y, x = _coordinates(grid)
    for strength in draw.uniform(0, 0.04, 2):
        angle = draw.uniform(0, np.pi)
        profile = draw.standard_normal(4096, dtype=np.float32)
        place = (np.cos(angle) * x + np.sin(angle) * y) * 420 + 2048
        marks = np.take(profile, place.astype(np.int32), mode="clip")
        texture += np.float32(strength) * marks
    # Grains are the cells around random points; noise on the coordinates makes their borders wavy.
    coarse = _grid(size, 160)
    wavy = []
    for axis in _coordinates(coarse):
        wavy.append(axis + 0.009 * _smooth_noise(draw, coarse, 11.0))
    count = int(draw.integers(14, 45))
    seeds = draw.random((count, 2)) * np.array(coarse) / _unit(coarse)
    distances, nearest = KDTree(seeds).query(np.stack(wavy, axis=-1), k=2)
    tones = draw.uniform(0.0, 0.06) * draw.standard_normal(count)
    from_border = distances[..., 1] - distances[..., 0]
    border = draw.uniform(0.0, 0.08) * np.exp(-np.square(from_border / 0.01))
    grains = tones[nearest[..., 0]] - border
    return _stretch(texture, size) + _stretch(grains, size)


def _defects(draw: Generator, size: Size) -> Field:
    """Return brightness deviations [H, W] by stains, pores, dust and scratches."""
    picture = Image.new("L", (size[1], size[0]), 128)
    pen, unit = ImageDraw.Draw(picture), _unit(size)

    def place() -> tuple[float, float]:
        row, column = draw.random(2) * size
        return float(column), float(row)

    for most, radii, tones in _BLOTS:
        for _ in range(int(draw.integers(0, most))):
            x, y = place()
            radius = unit * draw.uniform(*radii)
            angles = np.arange(14) * (2 * np.pi / 14)
            squeeze = draw.uniform(0.55, 1.0)
            radial = radius * (1 + 0.15 * draw.standard_normal(14))
            columns = x + radial * np.cos(angles)
            rows = y + squeeze * radial * np.sin(angles)
            outline = list(zip(columns, rows, strict=True))
            pen.polygon(outline, fill=_ink(draw.uniform(*tones)))
    for _ in range(int(draw.integers(0, 10))):
        x, y = place()
        angle = draw.uniform(0, 2 * np.pi)
        length = unit * draw.uniform(0.1, 1.4)
        exact = unit * draw.uniform(0.0008, 0.005)
        # A line is a pixel wide at least: a finer scratch is drawn fainter instead.
        faintness = min(1.0, max(0.4, exact))
        tone = draw.uniform(0.05, 0.28) * draw.choice([-1, 1]) * faintness
        end = (x + length * np.cos(angle), y + length * np.sin(angle))
        pen.line([(x, y), end], fill=_ink(tone), width=max(1, round(exact)))
    return (np.asarray(picture, np.float32) - 128) * np.float32(0.6 / 127)


def _ink(brightness: float) -> int:
    return round(128 + 127 * max(-1.0, min(1.0, brightness / 0.6)))


def _record(draw: Generator, image: Field) -> Field:
    """Apply the blur of the optics, shot noise of the detector, offsets of scan lines, and gain."""
    unit = _unit((image.shape[0], image.shape[1]))
    radius = unit * draw.uniform(0.001, 0.004)
    gain, offset = draw.uniform(0.9, 1.1), draw.uniform(-0.03, 0.03)
    # A smaller image represents a downscaled one, in which averaging reduces the noise.
    quiet = min(1.0, (unit / 768) ** 0.4)
    shot, line = quiet * draw.uniform(0.03, 0.15), quiet * draw.uniform(0.0, 0.015)
    image = image.clip(0.02, 1)
    if radius > 0.25:
        picture = Image.fromarray((image * np.float32(255)).astype(np.uint8))
        blurred = picture.filter(ImageFilter.GaussianBlur(radius))
        image = np.asarray(blurred, np.float32) * np.float32(1 / 255)
    noise = draw.standard_normal(image.shape, dtype=np.float32) * np.sqrt(image)
    lines = draw.standard_normal((len(image), 1), dtype=np.float32)
    noisy = image + np.float32(shot) * noise
    recorded: Field = np.float32(gain) * noisy + np.float32(line) * lines
    return recorded + np.float32(offset)


def _unit(size: Size) -> float:
    """Return the unit of length in pixels: the height of the largest 4:3 image inside `size`."""
    return min(float(size[0]), 0.75 * size[1])


def _grid(size: Size, most: int) -> Size:
    """Return a grid size of the same aspect ratio with at most `most` points per unit of length."""
    factor = min(1.0, most / _unit(size))
    return (max(2, round(size[0] * factor)), max(2, round(size[1] * factor)))


def _coordinates(size: Size) -> tuple[Field, Field]:
    """Return rows y and columns x of pixel centers in units of length, both [H, W]."""
    scale = np.float32(1 / _unit(size))
    y, x = (np.indices(size, np.float32) + np.float32(0.5)) * scale
    return y, x


def _stretch(field: npt.NDArray[np.floating], size: Size) -> Field:
    picture = Image.fromarray(np.ascontiguousarray(field, np.float32))
    return np.array(picture.resize((size[1], size[0]), Image.Resampling.BICUBIC))


def _smooth_noise(draw: Generator, size: Size, cells: float) -> Field:
    """Return smooth normal noise with about `cells` bumps per unit of length, standard deviation about 1."""
    # White noise on a grid of `cells` would show the grid; smoothed noise on a finer grid does not.
    scale = 2 * cells / _unit(size)
    rows, columns = (max(2, round(length * scale)) for length in size)
    noise = draw.standard_normal((rows + 4, columns + 4), dtype=np.float32)
    for _ in range(2):
        noise = noise[:-2] + 2 * noise[1:-1] + noise[2:]
        noise = noise[:, :-2] + 2 * noise[:, 1:-1] + noise[:, 2:]
    return _stretch(noise * np.float32(1 / 70), size)
