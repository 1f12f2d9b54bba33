"""Images, masks laid over them and differences, as pictures. Pure."""

import colorsys
import io

import numpy as np
import numpy.typing as npt
from PIL import Image

from scalestudy.data.types import IGNORE, Array

COLOURS = (
    (0, 0, 0), (230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (0, 114, 178), (213, 94, 0),
    (204, 121, 167),
)  # fmt: skip
"""Of the classes: M. Okabe and K. Ito, Color Universal Design, 2008: also colour-blind readers tell them."""
UNKNOWN = (128, 128, 128)
MISSED, FALSE, CONFUSED = (230, 159, 0), (86, 180, 233), (204, 121, 167)
"""Of a difference: pixels of a class taken for the first one, of the first one taken for another, and of one
class taken for another."""
STRENGTH = 0.45
"""Of a colour that is laid over an image."""


def palette() -> list[tuple[int, int, int]]:
    """A colour for each of the 256 class indices; beyond the first eight by the golden angle."""
    more = (colorsys.hsv_to_rgb(number * 0.618 % 1, 0.65, 0.9) for number in range(len(COLOURS), IGNORE))
    return [*COLOURS, *(tuple(round(255 * part) for part in colour) for colour in more), UNKNOWN]  # type: ignore[list-item]


def mask_png(mask: Array) -> bytes:
    """A mask [H, W] of class indices (uint8) as a palette PNG that stores those indices."""
    picture = Image.fromarray(np.ascontiguousarray(mask, np.uint8))
    picture.putpalette([part for colour in palette() for part in colour])
    return png(picture)


def shown(image: Array) -> npt.NDArray[np.uint8]:
    """An image [H, W, C] as 8-bit RGB to look at: deeper ones from their darkest to their lightest part."""
    first = image[:, :, :3] if image.shape[2] >= 3 else image[:, :, :1]
    if first.dtype != np.uint8:
        low, high = np.percentile(first, (0.2, 99.8))
        first = ((first - low) / max(high - low, 1e-12)).clip(0, 1) * 255
    return np.broadcast_to(first, (*first.shape[:2], 3)).astype(np.uint8)


def overlay(image: Array, mask: Array) -> npt.NDArray[np.uint8]:
    """The classes but the first laid over an RGB image (uint8 [H, W, 3]), with their borders drawn."""
    colours = np.array(palette(), np.float32)[mask]
    laid = image.astype(np.float32)
    inside = mask != 0
    laid[inside] = (1 - STRENGTH) * laid[inside] + STRENGTH * colours[inside]
    edge = inside & borders(mask)
    laid[edge] = colours[edge]
    return laid.round().astype(np.uint8)


def difference(image: Array, truth: Array, predicted: Array) -> npt.NDArray[np.uint8]:
    """Where two masks differ, over a dimmed RGB image; what is ignored in the truth is grey."""
    laid = (image.astype(np.float32) * 0.5).round().astype(np.uint8)
    known = truth != IGNORE
    wrong = known & (truth != predicted)
    laid[wrong & (predicted == 0)] = MISSED
    laid[wrong & (truth == 0)] = FALSE
    laid[wrong & (truth != 0) & (predicted != 0)] = CONFUSED
    laid[~known] = UNKNOWN
    return laid


def borders(mask: Array) -> npt.NDArray[np.bool_]:
    """Pixels of which the right or the lower neighbour is of another class."""
    border = np.zeros(mask.shape, bool)
    border[:, :-1] |= mask[:, :-1] != mask[:, 1:]
    border[:-1] |= mask[:-1] != mask[1:]
    return border


def png(picture: Image.Image | Array) -> bytes:
    """As a PNG file."""
    stream = io.BytesIO()
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    image.save(stream, "PNG", optimize=False)
    return stream.getvalue()


def within(picture: Array, side: int, *, nearest: bool = False) -> Array:
    """An RGB picture with its longer side at most `side` pixels; small ones are enlarged by whole numbers."""
    height, width = picture.shape[:2]
    longest = max(height, width)
    factor = side / longest if longest > side else max(1, min(side // longest, 8))
    if factor == 1:
        return picture
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    method = Image.Resampling.NEAREST if nearest or factor > 1 else Image.Resampling.BILINEAR
    return np.asarray(Image.fromarray(picture).resize(size, method))
