"""Render images, mask overlays and differences as pictures. Pure functions."""

import colorsys
import io
import itertools

import numpy as np
import numpy.typing as npt
from PIL import Image

from scalestudy.data.samples import IGNORE, Array

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
MISSED, FALSE, CONFUSED = (230, 159, 0), (86, 180, 233), (204, 121, 167)
"""Colours of a difference: a class predicted as the first one, the first one predicted as another, and any
other confusion."""
STRENGTH = 0.45
"""Opacity of a colour over an image."""


def palette() -> list[tuple[int, int, int]]:
    """Return a colour for each of the 256 class indices; from the ninth on, hues step by the golden angle."""
    colours = list(COLOURS)
    for number in range(len(COLOURS), IGNORE):
        # Steps of the golden angle keep the hues of neighbouring numbers far apart.
        hue = number * 0.618 % 1
        red, green, blue = colorsys.hsv_to_rgb(hue, 0.65, 0.9)
        colours.append((round(255 * red), round(255 * green), round(255 * blue)))
    colours.append(UNKNOWN)
    return colours


def mask_png(mask: Array) -> bytes:
    """Encode a mask [H, W] of class indices (uint8) as a palette PNG that stores these indices."""
    picture = Image.fromarray(np.ascontiguousarray(mask, np.uint8))
    picture.putpalette(list(itertools.chain.from_iterable(palette())))
    return png(picture)


def to_rgb(image: Array) -> npt.NDArray[np.uint8]:
    """Convert an image [H, W, C] to 8-bit RGB for display; other depths are stretched to their own range."""
    channels = 3 if image.shape[2] >= 3 else 1
    first = image[:, :, :channels]
    if first.dtype != np.uint8:
        low, high = np.percentile(first, (0.2, 99.8))
        first = ((first - low) / max(high - low, 1e-12)).clip(0, 1) * 255
    return np.broadcast_to(first, (*first.shape[:2], 3)).astype(np.uint8)


def overlay(image: Array, mask: Array) -> npt.NDArray[np.uint8]:
    """Draw all classes but the first, with borders, over an RGB image (uint8 [H, W, 3])."""
    colours = np.array(palette(), np.float32)[mask]
    laid = image.astype(np.float32)
    inside = mask != 0
    laid[inside] = (1 - STRENGTH) * laid[inside] + STRENGTH * colours[inside]
    edge = inside & borders(mask)
    laid[edge] = colours[edge]
    return laid.round().astype(np.uint8)


def difference(image: Array, truth: Array, predicted: Array) -> npt.NDArray[np.uint8]:
    """Draw the differences of two masks over a dimmed RGB image; pixels ignored in `truth` are grey."""
    laid = (image.astype(np.float32) * 0.5).round().astype(np.uint8)
    known = truth != IGNORE
    wrong = known & (truth != predicted)
    laid[wrong & (predicted == 0)] = MISSED
    laid[wrong & (truth == 0)] = FALSE
    laid[wrong & (truth != 0) & (predicted != 0)] = CONFUSED
    laid[~known] = UNKNOWN
    return laid


def borders(mask: Array) -> npt.NDArray[np.bool_]:
    """Return the pixels whose right or lower neighbour is of another class."""
    border = np.zeros(mask.shape, bool)
    border[:, :-1] |= mask[:, :-1] != mask[:, 1:]
    border[:-1] |= mask[:-1] != mask[1:]
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
    if longest > side:
        factor, method = side / longest, Image.Resampling.BILINEAR
    else:
        # A whole factor without interpolation: the pixels of a small picture stay visible.
        factor, method = max(1, min(side // longest, 8)), Image.Resampling.NEAREST
    if factor == 1:
        return picture
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return np.asarray(Image.fromarray(picture).resize(size, method))
