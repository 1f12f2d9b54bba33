"""Render images, mask overlays and differences as pictures. Pure functions."""

import colorsys
import io
import itertools

import numpy as np
import numpy.typing as npt
from PIL import Image

from scalestudy.data.samples import IGNORE, Array

Colour = tuple[int, int, int]
"""Red, green, blue in 0..255."""
COLOURS = (
    (0, 0, 0),
    (230, 159, 0),
    (86, 180, 233),
    (0, 158, 115),
    (240, 228, 66),
    (0, 114, 178),
    (213, 94, 0),
    (204, 121, 167),
)
"""Colours of classes for colour-blind readers (M. Okabe and K. Ito, Color Universal Design, 2008)."""
UNKNOWN = (128, 128, 128)
MISSED = (230, 159, 0)
"""Colour in a difference of a class that was predicted as the first one."""
FALSE = (86, 180, 233)
"""Colour in a difference of the first class, predicted as another."""
CONFUSED = (204, 121, 167)
"""Colour in a difference of any other confusion."""
STRENGTH = 0.45
"""Opacity of a colour over an image."""


def palette() -> list[Colour]:
    """Return a colour for each of the 256 class indices; from the ninth on, hues step by the golden angle."""
    colours: list[Colour] = list(COLOURS)
    for number in range(len(COLOURS), IGNORE):
        # Steps of the golden angle keep the hues of neighbouring numbers far apart.
        hue = number * 0.618 % 1
        shares = colorsys.hsv_to_rgb(hue, 0.65, 0.9)
        red, green, blue = [round(255 * share) for share in shares]
        colours.append((red, green, blue))
    colours.append(UNKNOWN)
    return colours


def mask_png(mask: Array) -> bytes:
    """Encode a mask [H, W] of class indices (uint8) as a palette PNG that stores these indices."""
    indices = np.ascontiguousarray(mask, np.uint8)
    picture = Image.fromarray(indices)
    levels = itertools.chain.from_iterable(palette())
    picture.putpalette(list(levels))
    return png(picture)


def to_rgb(image: Array) -> npt.NDArray[np.uint8]:
    """Convert an image [H, W, C] to 8-bit RGB for display; other depths are stretched to their own range."""
    height, width, count = image.shape
    channels = 3 if count >= 3 else 1
    shown = image[:, :, :channels]
    if shown.dtype != np.uint8:
        # Percentiles, not the extremes: a single hot pixel would make all others black.
        low, high = np.percentile(shown, (0.2, 99.8))
        # Above 0, also for an image of one value.
        contrast = max(high - low, 1e-12)
        above_low = shown - low
        shares = (above_low / contrast).clip(0, 1)
        shown = shares * 255
    shape = (height, width, 3)
    rgb = np.broadcast_to(shown, shape)
    return rgb.astype(np.uint8)


def overlay(image: Array, mask: Array) -> npt.NDArray[np.uint8]:
    """Draw all classes but the first, with borders, over an RGB image (uint8 [H, W, 3])."""
    table = np.array(palette(), np.float32)
    colours = table[mask]
    laid = image.astype(np.float32)
    inside = mask != 0
    seen_through = (1 - STRENGTH) * laid[inside]
    painted = STRENGTH * colours[inside]
    laid[inside] = seen_through + painted
    edge = inside & borders(mask)
    laid[edge] = colours[edge]
    return laid.round().astype(np.uint8)


def difference(
    image: Array,
    truth: Array,
    predicted: Array,
) -> npt.NDArray[np.uint8]:
    """Draw the differences of two masks over a dimmed RGB image; pixels ignored in `truth` are grey."""
    dimmed = image.astype(np.float32) * 0.5
    laid = dimmed.round().astype(np.uint8)
    known = truth != IGNORE
    wrong = known & (truth != predicted)
    missed = wrong & (predicted == 0)
    false = wrong & (truth == 0)
    # Where the two are equal nothing is wrong, so no pixel is both missed and false.
    confused = wrong & ~missed & ~false
    laid[missed] = MISSED
    laid[false] = FALSE
    laid[confused] = CONFUSED
    laid[~known] = UNKNOWN
    return laid


def borders(mask: Array) -> npt.NDArray[np.bool_]:
    """Return the pixels whose right or lower neighbour is of another class."""
    right = mask[:, 1:]
    lower = mask[1:]
    border = np.zeros(mask.shape, bool)
    # The last column has no right neighbour, the last row no lower one.
    border[:, :-1] |= mask[:, :-1] != right
    border[:-1] |= mask[:-1] != lower
    return border


def png(picture: Image.Image | Array) -> bytes:
    """Encode a picture as a PNG file."""
    stream = io.BytesIO()
    if not isinstance(picture, Image.Image):
        picture = Image.fromarray(picture)
    picture.save(stream, "PNG", optimize=False)
    return stream.getvalue()


def within(picture: Array, side: int) -> Array:
    """Scale an RGB picture to a longer side of at most `side` pixels; small ones by an integer factor."""
    height, width = picture.shape[:2]
    longest = max(height, width)
    factor: float
    if longest > side:
        factor = side / longest
        method = Image.Resampling.BILINEAR
    else:
        # A whole factor without interpolation: the pixels of a small picture stay visible.
        fitting = min(side // longest, 8)
        factor = max(1, fitting)
        method = Image.Resampling.NEAREST
    if factor == 1:
        return picture
    columns = max(1, round(width * factor))
    rows = max(1, round(height * factor))
    original = Image.fromarray(picture)
    scaled = original.resize((columns, rows), method)
    return np.asarray(scaled)
