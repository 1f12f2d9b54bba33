"""Draw a synthetic micrograph of an indent in a polished surface, with its mask.

An image depends only on the seed and its number; other sizes show the same scene. Brightness is in [0, 1],
lengths are relative to the height of the largest 4:3 image that fits inside the picture, angles are in radians.
"""

import math

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
    parts = []
    for part in range(4):
        parts.append(np.random.default_rng([seed, index, part]))
    shape, surface, defects, noise = parts
    mask, relief = _indent(shape, size)
    # `_texture` draws before `_light`, from the same generator.
    texture = _texture(surface, size)
    texture = texture + _defects(defects, size)
    light = _light(surface, size)
    visible = np.where(mask, np.float32(0.5), np.float32(1))
    visible_texture = texture * visible
    image = light + visible_texture + relief
    recorded = _record(noise, image)
    rounded = recorded.clip(0, 1) * 255 + 0.5
    return rounded.astype(np.uint8), mask


def _indent(draw: Generator, size: Size) -> tuple[Pixels, Field]:
    """Return mask and brightness of the indent of a three-sided pyramid (a Berkovich tip), both [H, W]."""
    inradius = draw.uniform(0.075, 0.2)
    contrast = draw.uniform(0.15, 0.38)
    y, x = _around_centre(draw, size, inradius)
    distances, along = _sides(draw, y, x)
    first, second, third = distances
    two_sides = np.maximum(first, second)
    outline = np.maximum(two_sides, third)
    faces = [outline == distance for distance in distances]
    inside = _faces(draw, faces, distances, outline)
    outside = _pile_up(draw, faces, along, outline)
    edge = _edge(draw, outline)
    # One pixel wide, so that the outline is not jagged.
    in_pixels = outline * (inradius * _unit(size))
    within = (0.5 - in_pixels).clip(0, 1)
    beyond = 1 - within
    relief = within * inside + beyond * outside + edge
    relief = contrast * relief
    mask = outline < 0
    return mask.astype(np.uint8), relief.astype(np.float32)


def _pile_up(
    draw: Generator,
    faces: list[npt.NDArray[np.bool_]],
    along: list[Field],
    outline: Field,
) -> Field:
    """Return the brightness of displaced material: outside, and most in the middle of each side."""
    place = np.select(faces, along)
    middle = _bell(place / 0.5)
    width = draw.uniform(0.06, 0.3)
    height = draw.uniform(-0.4, 1.6)
    from_crest = outline - width
    crest = _bell(from_crest / width)
    pile_up: Field = height * middle * crest
    return pile_up


def _edge(draw: Generator, outline: Field) -> Field:
    """Return the brightness of the rim, which falls off on both sides of the outline."""
    sharpness = draw.uniform(-0.1, 1.0)
    falling = -np.abs(outline) * 30
    edge: Field = sharpness * np.exp(falling)
    return edge


def _bell(distance: Field) -> Field:
    """Return a Gaussian bump around a distance of 0: 1 there, and 1/e at a distance of 1."""
    bell: Field = np.exp(-np.square(distance))
    return bell


def _around_centre(draw: Generator, size: Size, inradius: float) -> tuple[Field, Field]:
    """Return rows and columns from the centre of an indent, in inradii, which lies inside if there is room."""
    reach = 2.15 * inradius
    height_width = np.array(size) / _unit(size)
    middle = height_width / 2
    room = height_width - 2 * reach
    drawn = reach + draw.random(2) * room
    centre = np.where(room > 0, drawn, middle)
    row, column = centre.astype(np.float32)
    y, x = _coordinates(size)
    from_row = y - row
    from_column = x - column
    return from_row / inradius, from_column / inradius


def _sides(
    draw: Generator,
    y: Field,
    x: Field,
) -> tuple[list[Field], list[Field]]:
    """Return the distances to three sides in inradii, negative inside, and the places along each side.

    The sides are bent inwards in the middle.
    """
    rotation = draw.uniform(0, 2 * np.pi)
    bow = draw.uniform(-0.05, 0.15, 3)
    bow = bow.astype(np.float32)
    uneven = draw.uniform(-0.12, 0.12, 3)
    angles = rotation + _thirds() + uneven
    sines = np.sin(angles).astype(np.float32)
    cosines = np.cos(angles).astype(np.float32)
    # Of an equilateral triangle, half a side is the square root of 3 times the inradius.
    half_side = math.sqrt(3)
    distances, along = [], []
    for sine, cosine, bent in zip(sines, cosines, bow, strict=True):
        from_middle = cosine * y - sine * x
        place = from_middle / half_side
        straight = sine * y + cosine * x - 1
        # A parabola that ends at the corners.
        parabola = 1 - np.square(place)
        inwards = bent * parabola.clip(0)
        distances.append(straight + inwards)
        along.append(place)
    return distances, along


def _thirds() -> npt.NDArray[np.float64]:
    """Return the angles of three directions that divide a turn evenly."""
    return np.arange(3) * 2 * np.pi / 3


def _faces(
    draw: Generator,
    faces: list[npt.NDArray[np.bool_]],
    distances: list[Field],
    outline: Field,
) -> Field:
    """Return the brightness of the three faces, with the ridges between them."""
    first, second, third = distances
    two_sides = np.minimum(first, second)
    farthest = np.minimum(two_sides, third)
    between = sum(distances) - outline - farthest
    # Faces towards the light are brighter than the surface, others darker: no single threshold fits.
    sun = draw.uniform(0, 2 * np.pi)
    light = np.cos(sun + _thirds())
    darker = draw.uniform(-1.3, -0.2)
    tones = 0.9 * light + darker
    tones = tones.astype(np.float32)
    strength = draw.uniform(-0.2, 0.7)
    steepness = draw.uniform(12, 40)
    # Two sides are equally near on a ridge.
    from_ridge = between - outline
    ridge = strength * np.exp(from_ridge * steepness)
    ridge = ridge.astype(np.float32)
    inside: Field = np.select(faces, list(tones))
    brightness: Field = inside + ridge
    return brightness


def _light(draw: Generator, size: Size) -> Field:
    """Return the brightness [H, W] of a featureless surface."""
    # Light changes slowly: a coarse grid shows it, and costs less.
    grid = _grid(size, 64)
    y, x = _coordinates(grid)
    y -= y.mean()
    x -= x.mean()
    angle = draw.uniform(0, 2 * np.pi)
    amplitude = draw.uniform(0.02, 0.11)
    slope = _along(angle, y, x)
    uneven = 0.35 * _smooth_noise(draw, grid, 2.0)
    light = amplitude * (slope + uneven)
    base = draw.uniform(0.25, 0.75)
    vignette = draw.uniform(0.02, 0.2)
    from_centre = x * x + y * y
    fading = vignette * from_centre
    light = light + base - fading
    return _stretch(light, size)


def _texture(draw: Generator, size: Size) -> Field:
    """Return brightness deviations [H, W] by stains, polishing marks and grains of different grey."""
    grid = _grid(size, _FINEST)
    coarse_stains = 0.7 * _smooth_noise(draw, grid, 14.0)
    fine_stains = 0.7 * _smooth_noise(draw, grid, 60.0)
    stains = coarse_stains + fine_stains
    texture = draw.uniform(0.007, 0.035) * stains
    y, x = _coordinates(grid)
    strengths = draw.uniform(0, 0.04, 2)
    for strength in strengths.astype(np.float32):
        angle = draw.uniform(0, np.pi)
        # Brightness across the marks, which are parallel lines.
        profile = draw.standard_normal(4096, dtype=np.float32)
        place = _along(angle, y, x) * 420 + 2048
        nearest = place.astype(np.int32)
        marks = np.take(profile, nearest, mode="clip")
        texture += strength * marks
    stretched = _stretch(texture, size)
    grains = _grains(draw, size)
    return stretched + _stretch(grains, size)


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
    places = draw.random((count, 2)) * np.array(grid)
    seeds = places / _unit(grid)
    points = np.stack(wavy, axis=-1)
    distances, nearest = KDTree(seeds).query(points, k=2)
    contrast = draw.uniform(0.0, 0.06)
    tones = contrast * draw.standard_normal(count)
    to_nearest = distances[..., 0]
    to_second = distances[..., 1]
    # Both are equally near on a border.
    from_border = to_second - to_nearest
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
            tone = draw.uniform(*tones)
            pen.polygon(outline, fill=_ink(tone))
    count = int(draw.integers(0, 10))
    for _ in range(count):
        _scratch(draw, pen, size)
    drawn = np.asarray(picture, np.float32)
    deviations = drawn - 128
    return deviations * (0.6 / 127)


def _scratch(draw: Generator, pen: ImageDraw.ImageDraw, size: Size) -> None:
    """Draw a straight scratch, brighter or darker than the surface."""
    unit = _unit(size)
    x, y = _place(draw, size)
    angle = draw.uniform(0, 2 * np.pi)
    length = unit * draw.uniform(0.1, 1.4)
    exact = unit * draw.uniform(0.0008, 0.005)
    # A line is a pixel wide at least: a finer scratch is drawn fainter instead.
    faintness = min(1.0, max(0.4, exact))
    width = max(1, round(exact))
    tone = draw.uniform(0.05, 0.28)
    sign = draw.choice([-1, 1])
    ink = _ink(tone * sign * faintness)
    end_x = x + length * np.cos(angle)
    end_y = y + length * np.sin(angle)
    ends = [(x, y), (end_x, end_y)]
    pen.line(ends, fill=ink, width=width)


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
    # Pillow takes the column first.
    return list(zip(columns, rows, strict=True))


def _ink(brightness: float) -> int:
    share = brightness / 0.6
    limited = max(-1.0, min(1.0, share))
    return round(128 + 127 * limited)


def _record(draw: Generator, image: Field) -> Field:
    """Apply the blur of the optics, shot noise of the detector, offsets of scan lines, and gain."""
    height, width = image.shape
    unit = _unit((height, width))
    radius = unit * draw.uniform(0.001, 0.004)
    gain = draw.uniform(0.9, 1.1)
    offset = draw.uniform(-0.03, 0.03)
    # A smaller image represents a downscaled one, in which averaging reduces the noise.
    quiet = min(1.0, (unit / 768) ** 0.4)
    shot = quiet * draw.uniform(0.03, 0.15)
    line = quiet * draw.uniform(0.0, 0.015)
    image = image.clip(0.02, 1)
    if radius > 0.25:
        image = _blurred(image, radius)
    noise = draw.standard_normal(image.shape, dtype=np.float32)
    # The deviation of shot noise grows with the square root of the brightness.
    shot_noise = noise * np.sqrt(image)
    offsets = draw.standard_normal((height, 1), dtype=np.float32)
    noisy = image + shot * shot_noise
    amplified = gain * noisy
    recorded: Field = amplified + line * offsets
    return recorded + offset


def _blurred(image: Field, radius: float) -> Field:
    # Pillow blurs 8-bit images, not floats.
    levels = image * 255
    picture = Image.fromarray(levels.astype(np.uint8))
    blur = ImageFilter.GaussianBlur(radius)
    blurred = np.asarray(picture.filter(blur), np.float32)
    return blurred * (1 / 255)


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
    scale = 1 / _unit(size)
    corners = np.indices(size, np.float32)
    centers = corners + 0.5
    y, x = centers * scale
    return y, x


def _along(angle: float, y: Field, x: Field) -> Field:
    """Return how far each place lies in the direction of an angle."""
    across = np.cos(angle) * x
    down = np.sin(angle) * y
    distance: Field = across + down
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
    shape = (rows + 4, columns + 4)
    noise = draw.standard_normal(shape, dtype=np.float32)
    for _ in range(2):
        noise = _smoothed(noise)
        noise = _smoothed(noise.T).T
    return _stretch(noise * (1 / 70), size)


def _smoothed(noise: Field) -> Field:
    """Return the sum of each row with its neighbours, weighted 1, 2, 1; without the first and the last row."""
    above = noise[:-2]
    below = noise[2:]
    return above + 2 * noise[1:-1] + below
