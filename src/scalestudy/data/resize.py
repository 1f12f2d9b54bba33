"""Fit an image or a mask into a given size: aspect ratio kept, centred, padded."""

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from scalestudy.data.source import IGNORE, Size

Array = npt.NDArray[Any]

CENTRE = (0.5 - 1e-6, 0.5 - 1e-6)
"""A hair off the middle: of an odd rest, the larger half goes below and to the right, always."""


def fitted(size: Size, into: Size) -> Size:
    """Largest height and width with the aspect ratio of `size` that fit `into`."""
    ratio = min(into[0] / size[0], into[1] / size[1])
    return (
        min(into[0], max(1, round(size[0] * ratio))),
        min(into[1], max(1, round(size[1] * ratio))),
    )


def resize_image(image: Array, into: Size) -> Array:
    """Resize [H, W, C] with an antialiased bilinear filter and pad with zeros; keeps dtype and depth."""
    if image.shape[:2] == into:
        return image
    if image.dtype == np.uint8 and image.shape[2] == 3:
        return _fit(image, into, Image.Resampling.BILINEAR, 0)
    return np.stack([_fit_channel(image[:, :, c], into) for c in range(image.shape[2])], axis=-1)


def resize_mask(mask: Array, into: Size) -> Array:
    """Resize class indices [H, W] (uint8) to the nearest pixel and pad with 255, which is ignored."""
    return mask if mask.shape == into else _fit(mask, into, Image.Resampling.NEAREST, IGNORE)


def _fit_channel(channel: Array, into: Size) -> Array:
    # Pillow's 32-bit float mode is the only one that filters 16-bit values without loss.
    resized = _fit(np.ascontiguousarray(channel, np.float32), into, Image.Resampling.BILINEAR, 0)
    if channel.dtype.kind != "f":
        resized = np.rint(resized).clip(0, np.iinfo(channel.dtype).max)
    return resized.astype(channel.dtype, copy=False)


def _fit(pixels: Array, into: Size, method: Image.Resampling, fill: int) -> Array:
    height, width = fitted((pixels.shape[0], pixels.shape[1]), into)
    # Resized here, since `pad` would leave nothing of an image that is less than half a pixel wide.
    inner = Image.fromarray(pixels).resize((width, height), method)
    return np.asarray(ImageOps.pad(inner, (into[1], into[0]), color=fill, centering=CENTRE))
