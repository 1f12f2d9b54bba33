"""Fit an image or a mask into a given size by padding, cropping or stretching."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image

from scalestudy.data.types import IGNORE, Array, Size
from scalestudy.study.settings import DataSettings

Way = Literal["pad", "crop", "stretch"]


@dataclass(frozen=True)
class Fit:
    """The common size of a set's images, and how they are resized.

    Attributes:
        size: Height and width; None keeps the size of each image.
        way: "pad" and "crop" keep the aspect ratio; "stretch" does not.
    """

    size: Size | None
    way: Way = "pad"

    @classmethod
    def of(cls, data: DataSettings) -> "Fit":
        """Return the fit of the section [data]. Images that are cut into tiles keep their size."""
        return cls(None if data.tile else data.image_size, data.fit)

    def pads(self, size: Size) -> bool:
        """Whether an image of that size is padded with ignored pixels."""
        return self.size is not None and self.way == "pad" and fitted(size, self.size) != self.size

    def image(self, image: Array) -> Array:
        """Resize an image [H, W, C] or several [N, H, W, C]."""
        if self.size is None:
            return image
        if image.ndim == 4:
            return np.stack([self.image(page) for page in image])
        return resize_image(image, self.size, self.way)

    def mask(self, mask: Array) -> Array:
        """Resize a mask [H, W] (uint8) or several [N, H, W]."""
        if self.size is None:
            return mask
        if mask.ndim == 3:
            return np.stack([self.mask(page) for page in mask])
        return resize_mask(mask, self.size, self.way)


def fitted(size: Size, into: Size) -> Size:
    """Return the largest height and width with the aspect ratio of `size` that fit into `into`."""
    ratio = min(into[0] / size[0], into[1] / size[1])
    return (
        min(into[0], max(1, round(size[0] * ratio))),
        min(into[1], max(1, round(size[1] * ratio))),
    )


def covering(size: Size, into: Size) -> Size:
    """Return the smallest height and width with the aspect ratio of `size` that cover `into`."""
    ratio = max(into[0] / size[0], into[1] / size[1])
    return max(into[0], round(size[0] * ratio)), max(into[1], round(size[1] * ratio))


def resize_image(image: Array, into: Size, way: Way = "pad") -> Array:
    """Resize [H, W, C] with an antialiased bilinear filter and zero padding; keeps type and depth."""
    if image.shape[:2] == into:
        return image
    if image.dtype == np.uint8 and image.shape[2] == 3:
        return _placed(image, into, way, 0, _bilinear)
    channels = [_placed(image[:, :, c], into, way, 0, _bilinear_exact) for c in range(image.shape[2])]
    return np.stack(channels, axis=-1)


def resize_mask(mask: Array, into: Size, way: Way = "pad") -> Array:
    """Resize class indices [H, W] (uint8) by nearest neighbour; padding is 255, which is ignored."""
    return mask if mask.shape == into else _placed(mask, into, way, IGNORE, _nearest)


def _placed(pixels: Array, into: Size, way: Way, fill: int, scaled: Callable[[Array, Size], Array]) -> Array:
    """Scale pixels, then pad or crop around the center; an odd pixel goes to the bottom or right."""
    stored = (pixels.shape[0], pixels.shape[1])
    size = {"pad": fitted, "crop": covering}[way](stored, into) if way != "stretch" else into
    inner = scaled(pixels, size)
    top, left = abs(into[0] - size[0]) // 2, abs(into[1] - size[1]) // 2
    if way != "pad":
        return np.ascontiguousarray(inner[top : top + into[0], left : left + into[1]])
    whole = np.full((*into, *inner.shape[2:]), fill, inner.dtype)
    whole[top : top + size[0], left : left + size[1]] = inner
    return whole


def _bilinear(pixels: Array, size: Size) -> Array:
    return np.asarray(Image.fromarray(pixels).resize(size[::-1], Image.Resampling.BILINEAR))


def _bilinear_exact(channel: Array, size: Size) -> Array:
    # Pillow's 32-bit float mode is the only one that filters 16-bit values without loss.
    resized = _bilinear(np.ascontiguousarray(channel, np.float32), size)
    if channel.dtype.kind != "f":
        resized = np.rint(resized).clip(0, np.iinfo(channel.dtype).max)
    return resized.astype(channel.dtype, copy=False)


def _nearest(mask: Array, size: Size) -> Array:
    return np.asarray(Image.fromarray(mask).resize(size[::-1], Image.Resampling.NEAREST))
