"""Fit an image or a mask into a given size: aspect ratio kept, centred, padded."""

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from scalestudy.data.source import IGNORE, Size

Array = npt.NDArray[Any]


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
    height, width = fitted((image.shape[0], image.shape[1]), into)
    if image.dtype == np.uint8 and image.shape[2] == 3:
        inner = np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR))
    else:
        inner = np.stack(
            [_resize_channel(image[:, :, c], height, width) for c in range(image.shape[2])], axis=-1
        )
    return _pad(inner, into, 0)


def resize_mask(mask: Array, into: Size) -> Array:
    """Resize class indices [H, W] (uint8) to the nearest pixel and pad with 255, which is ignored."""
    if mask.shape == into:
        return mask
    height, width = fitted((mask.shape[0], mask.shape[1]), into)
    inner = np.asarray(Image.fromarray(mask).resize((width, height), Image.Resampling.NEAREST))
    return _pad(inner, into, IGNORE)


def _resize_channel(channel: Array, height: int, width: int) -> Array:
    # Pillow's 32-bit float mode is the only one that filters 16-bit values without loss.
    picture = Image.fromarray(np.ascontiguousarray(channel, np.float32))
    resized: Array = np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR))
    if channel.dtype.kind != "f":
        resized = np.rint(resized).clip(0, np.iinfo(channel.dtype).max)
    return resized.astype(channel.dtype, copy=False)


def _pad(inner: Array, into: Size, value: int) -> Array:
    if inner.shape[:2] == into:
        return inner
    outer = np.full(into + inner.shape[2:], value, inner.dtype)
    top, left = (into[0] - inner.shape[0]) // 2, (into[1] - inner.shape[1]) // 2
    outer[top : top + inner.shape[0], left : left + inner.shape[1]] = inner
    return outer
