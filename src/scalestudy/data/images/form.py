"""The common form of a set's images: channels, stored type, scale and size."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from PIL import Image

from scalestudy.config.settings import DataSettings
from scalestudy.data.images.decode import Header
from scalestudy.data.samples import IGNORE, Array, Size
from scalestudy.util.errors import UserError

Range = tuple[float, float]
Way = Literal["pad", "crop", "stretch"]
FULL = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}
_DEPTHS = {"u": "{}-bit", "i": "{}-bit signed", "f": "{}-bit float"}
"""Words for the kinds of NumPy's types."""
_COLOURS = {1: "grey", 3: "colour"}
"""Words for numbers of channels."""
_WIDENED = 257
"""Factor from 8 to 16 bits: 255 becomes 65535, so that the value scaled to [0, 1] stays the same."""


def store_as(array: Array, dtype: np.dtype[Any], name: str) -> Array:
    """Convert numbers to `dtype`: integers exactly, floats with rounding; `name` is for messages.

    Raises:
        UserError: If values are not real numbers, are NaN or infinite before or after the conversion, or do
            not fit an integer `dtype`.
    """
    if array.dtype.kind not in "biuf":
        raise UserError(
            "real numbers", f"{name} of type {array.dtype}", f"Store it as {dtype}."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise UserError(
            "finite numbers", f"{name} with NaN or infinity", "Repair or remove it."
        )
    if array.dtype == dtype:
        return array
    # Values that do not fit are refused below, with the name of the file.
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(dtype)
    if dtype.kind == "f" and not np.isfinite(cast).all():
        raise UserError(
            f"numbers that {dtype} can hold (up to {np.finfo(dtype).max:.3g})",
            f"{name}, with values up to {np.abs(array).max():.3g}",
            "Scale the data, for example to 0..1, before saving.",
        )
    if dtype.kind != "f" and not (cast == array).all():
        raise UserError(
            f"whole numbers that {dtype} can hold ({np.iinfo(dtype).min}..{np.iinfo(dtype).max})",
            f"{name}, with values {array.min()}..{array.max()}",
            "Store whole numbers of that range.",
        )
    return cast


@dataclass(frozen=True)
class Form:
    """Common form of images.

    Attributes:
        channels: Channels of every image; grey values are repeated.
        dtype: Stored type: uint8, uint16 or float32.
        value_range: Values that become 0 and 1; None for the range of the type.
    """

    channels: int
    dtype: np.dtype[Any]
    value_range: Range | None = None

    @property
    def scale(self) -> float:
        """Factor from stored values to the values that models receive."""
        if self.dtype.kind == "f":
            return 1.0
        return 1 / (self.value_range[1] if self.value_range else FULL[self.dtype])

    def of(self, values: Array, name: str) -> Array:
        """Convert images [..., channels] to this form; `name` is for messages.

        Raises:
            UserError: If values are NaN or infinite, or integers that float32 cannot represent exactly.
        """
        if values.shape[-1] < self.channels:
            values = np.repeat(values, self.channels, axis=-1)
        if self.dtype.kind != "f":
            if values.dtype == self.dtype:
                return values
            return values.astype(np.uint16) * _WIDENED
        floats = store_as(values, self.dtype, name)
        whole = values.dtype.kind in "iu"
        if whole and not (floats.astype(values.dtype) == values).all():
            raise UserError(
                "whole numbers up to 16,777,216, which float32 holds exactly",
                f"{name}, with values {values.min()}..{values.max()}",
                "Store the set as 16 bits, or as floating-point numbers.",
            )
        if self.value_range is None:
            return floats
        low, high = (np.float32(bound) for bound in self.value_range)
        scaled: Array = (floats - low) / (high - low)
        return scaled


def common_form(headers: Sequence[Header], value_range: Range | None) -> Form:
    """Return the common form of a set.

    Sets of 8-bit or of 16-bit images keep their type; in a mixed set 8-bit images are widened. Other integers
    and floats become float32. If one image has colours, grey images get three channels.

    Raises:
        UserError: If types or channels differ in another way, or the value range is empty.
    """
    if value_range is not None and not value_range[0] < value_range[1]:
        raise UserError(
            "a value_range of a lower and a higher number",
            f"value_range = {list(value_range)}",
            "Write the lowest value first.",
        )
    types: dict[np.dtype[Any], Header] = {}
    channels: dict[int, Header] = {}
    for header in headers:
        types.setdefault(header.dtype, header)
        channels.setdefault(header.channels, header)
    if len(channels) > 1 and set(channels) != {1, 3}:
        one, other = list(channels.values())[:2]
        raise UserError(
            "images with the same channels, or grey and coloured images",
            f"{one.path} with {one.channels} and {other.path} with {other.channels}",
            "Leave out one kind, or save only the channels that all images have.",
        )
    if len(types) > 1 and not set(types) <= set(FULL):
        one, other = list(types.values())[:2]
        raise UserError(
            "images of one data type, or of 8 and 16 bits",
            f"{one.path} of {one.dtype} and {other.path} of {other.dtype}",
            "Convert all images to one type.",
        )
    whole_range = value_range is None or (value_range[0] == 0 and len(types) == 1)
    stored = np.dtype(np.float32)
    if set(types) <= set(FULL) and whole_range:
        stored = max(types, key=lambda dtype: dtype.itemsize)
    return Form(max(channels), stored, value_range)


def describe_headers(headers: Sequence[Header]) -> str:
    """Describe types and channels of a set, most frequent first: "16-bit grey (12), 8-bit grey (3)"."""
    kinds = Counter((header.dtype, header.channels) for header in headers)
    described = []
    for (dtype, channels), count in kinds.most_common():
        depth = _DEPTHS[dtype.kind].format(dtype.itemsize * 8)
        colour = _COLOURS.get(channels, f"of {channels} channels")
        described.append(f"{depth} {colour} ({count})")
    return ", ".join(described)


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
        if self.size is None or self.way != "pad":
            return False
        return fit_size(size, self.size) != self.size

    def image(self, image: Array) -> Array:
        """Resize an image [H, W, C]."""
        if self.size is None:
            return image
        return resize_image(image, self.size, self.way)

    def mask(self, mask: Array) -> Array:
        """Resize a mask [H, W] (uint8)."""
        if self.size is None:
            return mask
        return resize_mask(mask, self.size, self.way)


def fit_size(size: Size, into: Size) -> Size:
    """Return the largest height and width with the aspect ratio of `size` that fit into `into`."""
    ratio = min(into[0] / size[0], into[1] / size[1])
    # Rounding may exceed `into` by a pixel, or leave nothing of a long, narrow image.
    height = min(into[0], max(1, round(size[0] * ratio)))
    width = min(into[1], max(1, round(size[1] * ratio)))
    return height, width


def covering(size: Size, into: Size) -> Size:
    """Return the smallest height and width with the aspect ratio of `size` that cover `into`."""
    ratio = max(into[0] / size[0], into[1] / size[1])
    height = max(into[0], round(size[0] * ratio))
    width = max(into[1], round(size[1] * ratio))
    return height, width


def resize_image(image: Array, into: Size, way: Way = "pad") -> Array:
    """Resize [H, W, C] with an antialiased bilinear filter and zero padding; keeps type and depth."""
    if image.shape[:2] == into:
        return image
    if image.dtype == np.uint8 and image.shape[2] == 3:
        return _place(image, into, way, 0, _bilinear)
    channels = []
    for channel in np.moveaxis(image, -1, 0):
        channels.append(_place(channel, into, way, 0, _bilinear_exact))
    return np.stack(channels, axis=-1)


def resize_mask(mask: Array, into: Size, way: Way = "pad") -> Array:
    """Resize class indices [H, W] (uint8) by nearest neighbour; padding is 255, which is ignored."""
    if mask.shape == into:
        return mask
    return _place(mask, into, way, IGNORE, _nearest)


def _place(
    pixels: Array,
    into: Size,
    way: Way,
    fill: int,
    scaled: Callable[[Array, Size], Array],
) -> Array:
    """Scale pixels, then pad or crop around the center; an odd pixel goes to the bottom or right."""
    size = into
    if way == "pad":
        size = fit_size((pixels.shape[0], pixels.shape[1]), into)
    elif way == "crop":
        size = covering((pixels.shape[0], pixels.shape[1]), into)
    inner = scaled(pixels, size)
    top, left = abs(into[0] - size[0]) // 2, abs(into[1] - size[1]) // 2
    if way != "pad":
        return np.ascontiguousarray(inner[top : top + into[0], left : left + into[1]])
    whole = np.full((*into, *inner.shape[2:]), fill, inner.dtype)
    whole[top : top + size[0], left : left + size[1]] = inner
    return whole


def _bilinear(pixels: Array, size: Size) -> Array:
    width_and_height = size[::-1]
    picture = Image.fromarray(pixels)
    return np.asarray(picture.resize(width_and_height, Image.Resampling.BILINEAR))


def _bilinear_exact(channel: Array, size: Size) -> Array:
    # Pillow's 32-bit float mode is the only one that filters 16-bit values without loss.
    resized = _bilinear(np.ascontiguousarray(channel, np.float32), size)
    if channel.dtype.kind != "f":
        resized = np.rint(resized).clip(0, np.iinfo(channel.dtype).max)
    return resized.astype(channel.dtype, copy=False)


def _nearest(mask: Array, size: Size) -> Array:
    width_and_height = size[::-1]
    picture = Image.fromarray(mask)
    return np.asarray(picture.resize(width_and_height, Image.Resampling.NEAREST))
