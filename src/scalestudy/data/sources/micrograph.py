"""Draw a synthetic micrograph of an indent in a polished surface, with its mask.

An image depends only on the seed and its number; other sizes show the same scene. Brightness is in [0, 1],
lengths are relative to the height of the largest 4:3 image that fits inside the picture, angles are in radians.
"""

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter

from scalestudy.data.samples import Size

VERSION = 4
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


def make_micrograph(seed: int, index: int, size: Size) -> tuple[Pixels, Pixels]:
    """Draw micrograph number `index` of a seed: an image [H, W] and its mask [H, W] of 0 and 1."""
    # A generator of its own for each part: a change of one part leaves the others as they are.
    shape, surface, defects, noise = [
        np.random.default_rng([seed, index, part]) for part in range(4)
    ]
    mask, relief = _indent(shape, size)
    # `_texture` draws before `_light`, from the same generator.
    texture = _texture(surface, size)
    texture = texture + _defects(defects, size)
    strength = np.where(mask, np.float32(0.5), np.float32(1))
    image = _light(surface, size)
    image = image + texture * strength + relief
    recorded = _record(noise, image).clip(0, 1)
    pixels = recorded * 255 + np.float32(0.5)
    return pixels.astype(np.uint8), mask


def _indent(draw: Generator, size: Size) -> tuple[Pixels, Field]:
    """Return mask and brightness of the indent of a three-sided pyramid (a Berkovich tip), both [H, W]."""
    inradius = draw.uniform(0.075, 0.2)
    contrast = draw.uniform(0.15, 0.38)
    y, x = _around_centre(draw, size, inradius)
    distances, along = _sides(draw, y, x)
    first, second, third = distances
    outline = np.maximum(np.maximum(first, second), third)
    faces = [outline == distance for distance in distances]
    inside = _faces(draw, faces, distances, outline)
    # Displaced material piles up outside, most in the middle of each side.
    middle = _bell(np.select(faces, along) / np.float32(0.5))
    width = np.float32(draw.uniform(0.06, 0.3))
    height = np.float32(draw.uniform(-0.4, 1.6))
    outside = _bell((outline - width) / width)
    pile_up = height * middle * outside
    sharpness = np.float32(draw.uniform(-0.1, 1.0))
    falling = -np.abs(outline) * np.float32(30)
    edge = sharpness * np.exp(falling)
    # One pixel wide, so that the outline is not jagged.
    pixels = np.float32(inradius * _unit(size))
    within = np.float32(0.5) - outline * pixels
    within = within.clip(0, 1)
    relief = within * inside + (1 - within) * pile_up + edge
    relief = np.float32(contrast) * relief
    mask = outline < 0
    return mask.astype(np.uint8), relief.astype(np.float32)


def _bell(distance: Field) -> Field:
    """Return a Gaussian bump around a distance of 0: 1 there, and 1/e at a distance of 1."""
    bell: Field = np.exp(-np.square(distance))
    return bell


def _around_centre(draw: Generator, size: Size, inradius: float) -> tuple[Field, Field]:
    """Return rows and columns from the centre of an indent, in inradii, which lies inside if there is room."""
    reach = 2.15 * inradius
    height_width = np.array(size) / _unit(size)
    room = height_width - 2 * reach
    drawn = reach + draw.random(2) * room
    centre = np.where(room > 0, drawn, height_width / 2)
    row, column = centre
    y, x = _coordinates(size)
    scale = np.float32(inradius)
    y = (y - np.float32(row)) / scale
    x = (x - np.float32(column)) / scale
    return y, x


def _sides(draw: Generator, y: Field, x: Field) -> tuple[list[Field], list[Field]]:
    """Return the distances to three sides in inradii, negative inside, and the places along each side.

    The sides are bent inwards in the middle.
    """
    rotation = draw.uniform(0, 2 * np.pi)
    bow = draw.uniform(-0.05, 0.15, 3)
    bow = bow.astype(np.float32)
    thirds = np.arange(3) * 2 * np.pi / 3
    uneven = draw.uniform(-0.12, 0.12, 3)
    angles = rotation + thirds + uneven
    sines = np.sin(angles).astype(np.float32)
    cosines = np.cos(angles).astype(np.float32)
    # Of an equilateral triangle, half a side is the square root of 3 times the inradius.
    half_side = np.float32(np.sqrt(3))
    distances, along = [], []
    for sine, cosine, bent in zip(sines, cosines, bow, strict=True):
        place = (cosine * y - sine * x) / half_side
        straight = sine * y + cosine * x - 1
        inwards = bent * (1 - np.square(place)).clip(0)
        distances.append(straight + inwards)
        along.append(place)
    return distances, along


def _faces(
    draw: Generator,
    faces: list[npt.NDArray[np.bool_]],
    distances: list[Field],
    outline: Field,
) -> Field:
    """Return the brightness of the three faces, with the ridges between them."""
    first, second, third = distances
    farthest = np.minimum(np.minimum(first, second), third)
    between = sum(distances) - outline - farthest
    # Faces towards the light are brighter than the surface, others darker: no single threshold fits.
    sun = draw.uniform(0, 2 * np.pi)
    thirds = np.arange(3) * 2 * np.pi / 3
    light = np.cos(sun + thirds)
    tones = 0.9 * light + draw.uniform(-1.3, -0.2)
    tones = tones.astype(np.float32)
    strength = draw.uniform(-0.2, 0.7)
    steepness = np.float32(draw.uniform(12, 40))
    # Two sides are equally near on a ridge.
    ridge = strength * np.exp((between - outline) * steepness)
    ridge = ridge.astype(np.float32)
    inside: Field = np.select(faces, list(tones))
    brightness: Field = inside + ridge
    return brightness


def _light(draw: Generator, size: Size) -> Field:
    """Return the brightness [H, W] of a featureless surface."""
    # Light changes slowly: a coarse grid shows it, and costs less.
    grid = _grid(size, 64)
    y, x = _coordinates(grid)
    y = y - y.mean()
    x = x - x.mean()
    angle = draw.uniform(0, 2 * np.pi)
    amplitude = draw.uniform(0.02, 0.11)
    slope = _along(angle, y, x)
    uneven = 0.35 * _smooth_noise(draw, grid, 2.0)
    light = amplitude * (slope + uneven)
    base = draw.uniform(0.25, 0.75)
    vignette = draw.uniform(0.02, 0.2)
    from_centre = x * x + y * y
    light = light + base - vignette * from_centre
    return _stretch(light, size)


def _texture(draw: Generator, size: Size) -> Field:
    """Return brightness deviations [H, W] by stains, polishing marks and grains of different grey."""
    grid = _grid(size, _FINEST)
    coarse_stains = 0.7 * _smooth_noise(draw, grid, 14.0)
    fine_stains = 0.7 * _smooth_noise(draw, grid, 60.0)
    stains = coarse_stains + fine_stains
    texture = draw.uniform(0.007, 0.035) * stains
    y, x = _coordinates(grid)
    for strength in draw.uniform(0, 0.04, 2):
        angle = draw.uniform(0, np.pi)
        # Brightness across the marks, which are parallel lines.
        profile = draw.standard_normal(4096, dtype=np.float32)
        place = _along(angle, y, x) * 420 + 2048
        marks = np.take(profile, place.astype(np.int32), mode="clip")
        texture += np.float32(strength) * marks
    grains = _grains(draw, size)
    return _stretch(texture, size) + _stretch(grains, size)


def _grains(draw: Generator, size: Size) -> npt.NDArray[np.floating]:
    """Return brightness deviations by grains, the cells around random points, on a coarse grid."""
    from scipy.spatial import KDTree

    grid = _grid(size, 160)
    # Noise on the coordinates makes the borders of the cells wavy.
    wavy = []
    for axis in _coordinates(grid):
        wave = 0.009 * _smooth_noise(draw, grid, 11.0)
        wavy.append(axis + wave)
    count = int(draw.integers(14, 45))
    seeds = draw.random((count, 2)) * np.array(grid) / _unit(grid)
    points = np.stack(wavy, axis=-1)
    distances, nearest = KDTree(seeds).query(points, k=2)
    tones = draw.uniform(0.0, 0.06) * draw.standard_normal(count)
    from_border = distances[..., 1] - distances[..., 0]
    darkness = draw.uniform(0.0, 0.08)
    border = darkness * _bell(from_border / 0.01)
    own_grain = nearest[..., 0]
    grains: npt.NDArray[np.floating] = tones[own_grain] - border
    return grains


def _defects(draw: Generator, size: Size) -> Field:
    """Return brightness deviations [H, W] by stains, pores, dust and scratches."""
    height, width = size
    picture = Image.new("L", (width, height), 128)
    pen = ImageDraw.Draw(picture)
    unit = _unit(size)
    for most, radii, tones in _BLOTS:
        count = int(draw.integers(0, most))
        for _ in range(count):
            x, y = _place(draw, size)
            radius = unit * draw.uniform(*radii)
            outline = _blot(draw, x, y, radius)
            pen.polygon(outline, fill=_ink(draw.uniform(*tones)))
    count = int(draw.integers(0, 10))
    for _ in range(count):
        x, y = _place(draw, size)
        angle = draw.uniform(0, 2 * np.pi)
        length = unit * draw.uniform(0.1, 1.4)
        exact = unit * draw.uniform(0.0008, 0.005)
        # A line is a pixel wide at least: a finer scratch is drawn fainter instead.
        faintness = min(1.0, max(0.4, exact))
        tone = draw.uniform(0.05, 0.28)
        sign = draw.choice([-1, 1])
        ink = _ink(tone * sign * faintness)
        end = (x + length * np.cos(angle), y + length * np.sin(angle))
        pen.line([(x, y), end], fill=ink, width=max(1, round(exact)))
    drawn = np.asarray(picture, np.float32)
    return (drawn - 128) * np.float32(0.6 / 127)


def _place(draw: Generator, size: Size) -> tuple[float, float]:
    """Return a random place in a picture as Pillow orders it: column, row."""
    row, column = draw.random(2) * size
    return float(column), float(row)


def _blot(
    draw: Generator,
    x: float,
    y: float,
    radius: float,
) -> list[tuple[float, float]]:
    """Return the corners of an uneven, flattened polygon around a place."""
    angles = np.arange(14) * (2 * np.pi / 14)
    squeeze = draw.uniform(0.55, 1.0)
    unevenness = 1 + 0.15 * draw.standard_normal(14)
    radial = radius * unevenness
    columns = x + radial * np.cos(angles)
    rows = y + squeeze * radial * np.sin(angles)
    return list(zip(columns, rows, strict=True))


def _ink(brightness: float) -> int:
    share = max(-1.0, min(1.0, brightness / 0.6))
    return round(128 + 127 * share)


def _record(draw: Generator, image: Field) -> Field:
    """Apply the blur of the optics, shot noise of the detector, offsets of scan lines, and gain."""
    height, width = image.shape
    unit = _unit((height, width))
    radius = unit * draw.uniform(0.001, 0.004)
    gain = np.float32(draw.uniform(0.9, 1.1))
    offset = np.float32(draw.uniform(-0.03, 0.03))
    # A smaller image represents a downscaled one, in which averaging reduces the noise.
    quiet = min(1.0, (unit / 768) ** 0.4)
    shot = np.float32(quiet * draw.uniform(0.03, 0.15))
    line = np.float32(quiet * draw.uniform(0.0, 0.015))
    image = image.clip(0.02, 1)
    if radius > 0.25:
        image = _blurred(image, radius)
    # The deviation of shot noise grows with the square root of the brightness.
    noise = draw.standard_normal(image.shape, dtype=np.float32)
    noise = noise * np.sqrt(image)
    lines = draw.standard_normal((height, 1), dtype=np.float32)
    noisy = image + shot * noise
    recorded: Field = gain * noisy + line * lines
    return recorded + offset


def _blurred(image: Field, radius: float) -> Field:
    # Pillow blurs 8-bit images, not floats.
    eight_bits = (image * np.float32(255)).astype(np.uint8)
    blur = ImageFilter.GaussianBlur(radius)
    blurred = Image.fromarray(eight_bits).filter(blur)
    return np.asarray(blurred, np.float32) * np.float32(1 / 255)


def _unit(size: Size) -> float:
    """Return the unit of length in pixels: the height of the largest 4:3 image inside `size`."""
    height, width = size
    return min(float(height), 0.75 * width)


def _grid(size: Size, most: int) -> Size:
    """Return a grid size of the same aspect ratio with at most `most` points per unit of length."""
    factor = min(1.0, most / _unit(size))
    height, width = size
    rows = max(2, round(height * factor))
    columns = max(2, round(width * factor))
    return rows, columns


def _coordinates(size: Size) -> tuple[Field, Field]:
    """Return rows y and columns x of pixel centers in units of length, both [H, W]."""
    scale = np.float32(1 / _unit(size))
    centers = np.indices(size, np.float32) + np.float32(0.5)
    y, x = centers * scale
    return y, x


def _along(angle: float, y: Field, x: Field) -> Field:
    """Return how far each place lies in the direction of an angle."""
    distance: Field = np.cos(angle) * x + np.sin(angle) * y
    return distance


def _stretch(field: npt.NDArray[np.floating], size: Size) -> Field:
    height, width = size
    picture = Image.fromarray(np.ascontiguousarray(field, np.float32))
    stretched = picture.resize((width, height), Image.Resampling.BICUBIC)
    return np.array(stretched)


def _smooth_noise(draw: Generator, size: Size, cells: float) -> Field:
    """Return smooth normal noise with about `cells` bumps per unit of length, standard deviation about 1."""
    # White noise on a grid of `cells` would show the grid; smoothed noise on a finer grid does not.
    scale = 2 * cells / _unit(size)
    height, width = size
    rows = max(2, round(height * scale))
    columns = max(2, round(width * scale))
    # Each smoothing below takes one row and one column from every border.
    noise = draw.standard_normal((rows + 4, columns + 4), dtype=np.float32)
    for _ in range(2):
        noise = noise[:-2] + 2 * noise[1:-1] + noise[2:]
        noise = noise[:, :-2] + 2 * noise[:, 1:-1] + noise[:, 2:]
    return _stretch(noise * np.float32(1 / 70), size)
