"""The pixels that a prepared data set stores of an image and its mask, with Pillow and NumPy alone."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

Size = tuple[int, int]
"""Height and width."""


def image_as_stored(file: Path, wanted: Size, fit: str = "pad") -> Any:
    """Return an image, turned upright and brought to the wanted size."""
    pixels = np.asarray(ImageOps.exif_transpose(Image.open(file)))
    width_and_height = scaled_size(pixels.shape[:2], wanted, fit)[::-1]
    if pixels.ndim == 3:  # RGB is filtered in 8 bits
        scaled = np.asarray(
            Image.fromarray(pixels).resize(width_and_height, Image.Resampling.BILINEAR)
        )
    else:  # grey of 8 or 16 bits in floating point, halves rounded to even
        grey = Image.fromarray(pixels.astype(np.float32))
        scaled = np.rint(
            grey.resize(width_and_height, Image.Resampling.BILINEAR)
        ).astype(pixels.dtype)
    return placed(scaled, wanted, fill=0)


def mask_as_stored(file: Path, wanted: Size, fit: str = "pad") -> Any:
    """Return a mask of class indices, brought to the wanted size."""
    indices = np.asarray(Image.open(file))
    width_and_height = scaled_size(indices.shape, wanted, fit)[::-1]
    scaled = np.asarray(
        Image.fromarray(indices).resize(width_and_height, Image.Resampling.NEAREST)
    )
    return placed(scaled, wanted, fill=255)


def scaled_size(own: Any, wanted: Size, fit: str) -> Size:
    """Return the size before padding or cropping."""
    ratios = wanted[0] / own[0], wanted[1] / own[1]
    if fit == "pad":
        return max(1, round(own[0] * min(ratios))), max(1, round(own[1] * min(ratios)))
    if fit == "crop":
        return max(wanted[0], round(own[0] * max(ratios))), max(
            wanted[1], round(own[1] * max(ratios))
        )
    return wanted


def placed(scaled: Any, wanted: Size, fill: int) -> Any:
    """Pad or crop; the larger half of an odd rest is below and to the right."""
    height, width = wanted
    top, left = abs(height - scaled.shape[0]) // 2, abs(width - scaled.shape[1]) // 2
    if scaled.shape[0] > height or scaled.shape[1] > width:
        return scaled[top : top + height, left : left + width]
    whole = np.full((height, width, *scaled.shape[2:]), fill, scaled.dtype)
    whole[top : top + scaled.shape[0], left : left + scaled.shape[1]] = scaled
    return whole
