"""Render images, mask overlays and differences as pictures. Pure functions."""

import colorsys
import io

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
    more = (
        colorsys.hsv_to_rgb(number * 0.618 % 1, 0.65, 0.9)
        for number in range(len(COLOURS), IGNORE)
    )
    return [
        *COLOURS,
        *(tuple(round(255 * part) for part in colour) for colour in more),  # type: ignore[list-item]
        UNKNOWN,
    ]


def mask_png(mask: Array) -> bytes:
    """Encode a mask [H, W] of class indices (uint8) as a palette PNG that stores these indices."""
    picture = Image.fromarray(np.ascontiguousarray(mask, np.uint8))
    picture.putpalette([part for colour in palette() for part in colour])
    return png(picture)


def to_rgb(image: Array) -> npt.NDArray[np.uint8]:
    """Convert an image [H, W, C] to 8-bit RGB for display; other depths are stretched to their own range."""
    first = image[:, :, :3] if image.shape[2] >= 3 else image[:, :, :1]
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
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    image.save(stream, "PNG", optimize=False)
    return stream.getvalue()


def within(picture: Array, side: int) -> Array:
    """Scale an RGB picture to a longer side of at most `side` pixels; small ones by an integer factor."""
    height, width = picture.shape[:2]
    longest = max(height, width)
    factor = side / longest if longest > side else max(1, min(side // longest, 8))
    if factor == 1:
        return picture
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    method = Image.Resampling.NEAREST if factor > 1 else Image.Resampling.BILINEAR
    return np.asarray(Image.fromarray(picture).resize(size, method))
