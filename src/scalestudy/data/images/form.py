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
            "real numbers",
            f"{name} of type {array.dtype}",
            f"Store it as {dtype}.",
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise UserError(
            "finite numbers",
            f"{name} with NaN or infinity",
            "Repair or remove it.",
        )
    if array.dtype == dtype:
        return array
    # Values that do not fit are refused below, with the name of the file.
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(dtype)
    if dtype.kind == "f":
        if np.isfinite(cast).all():
            return cast
        largest = np.finfo(dtype).max
        raise UserError(
            f"numbers that {dtype} can hold (up to {largest:.3g})",
            f"{name}, with values up to {np.abs(array).max():.3g}",
            "Scale the data, for example to 0..1, before saving.",
        )
    if (cast == array).all():
        return cast
    limits = np.iinfo(dtype)
    raise UserError(
        f"whole numbers that {dtype} can hold ({limits.min}..{limits.max})",
        f"{name}, with values {array.min()}..{array.max()}",
        "Store whole numbers of that range.",
    )


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
            return 1.0  # `of` scales floats already
        if self.value_range is None:
            return 1 / FULL[self.dtype]
        _, high = self.value_range
        return 1 / high

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
        if values.dtype.kind in "iu":
            # Compared in their own type, in which no value is rounded.
            returned = floats.astype(values.dtype)
            if not (returned == values).all():
                raise UserError(
                    "whole numbers up to 16,777,216, which float32 holds exactly",
                    f"{name}, with values {values.min()}..{values.max()}",
                    "Store the set as 16 bits, or as floating-point numbers.",
                )
        if self.value_range is None:
            return floats
        lowest, highest = self.value_range
        low = np.float32(lowest)
        high = np.float32(highest)
        scaled: Array = (floats - low) / (high - low)
        return scaled


def common_form(headers: Sequence[Header], value_range: Range | None) -> Form:
    """Return the common form of a set.

    Sets of 8-bit or of 16-bit images keep their type; in a mixed set 8-bit images are widened. Other integers
    and floats become float32. If one image has colours, grey images get three channels.

    Raises:
        UserError: If types or channels differ in another way, or the value range is empty.
    """
    if value_range is not None:
        low, high = value_range
        if not low < high:
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
        one, other, *_ = channels.values()
        raise UserError(
            "images with the same channels, or grey and coloured images",
            f"{one.path} with {one.channels} and {other.path} with {other.channels}",
            "Leave out one kind, or save only the channels that all images have.",
        )
    of_8_or_16_bits = set(types) <= set(FULL)
    if len(types) > 1 and not of_8_or_16_bits:
        one, other, *_ = types.values()
        raise UserError(
            "images of one data type, or of 8 and 16 bits",
            f"{one.path} of {one.dtype} and {other.path} of {other.dtype}",
            "Convert all images to one type.",
        )
    # A range from 0 is only a factor, which `scale` applies, so that integers can stay. Not in a mixed set:
    # widening changes the values of its 8-bit images.
    keeps_integers = True
    if value_range is not None:
        keeps_integers = value_range[0] == 0 and len(types) == 1
    stored = np.dtype(np.float32)
    if of_8_or_16_bits and keeps_integers:
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
        size = data.image_size
        if data.tile:
            size = None
        return cls(size, data.fit)

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
    height, width = size
    most_rows, most_columns = into
    ratio = min(most_rows / height, most_columns / width)
    # Rounding may exceed `into` by a pixel, or leave nothing of a long, narrow image.
    rows = max(1, round(height * ratio))
    columns = max(1, round(width * ratio))
    return min(most_rows, rows), min(most_columns, columns)


def covering(size: Size, into: Size) -> Size:
    """Return the smallest height and width with the aspect ratio of `size` that cover `into`."""
    height, width = size
    least_rows, least_columns = into
    ratio = max(least_rows / height, least_columns / width)
    return round(height * ratio), round(width * ratio)


def resize_image(image: Array, into: Size, way: Way = "pad") -> Array:
    """Resize [H, W, C] with an antialiased bilinear filter and zero padding; keeps type and depth."""
    if image.shape[:2] == into:
        return image
    if image.dtype == np.uint8 and image.shape[2] == 3:
        return _place(image, into, way, 0, _bilinear)
    channels = []
    # Pillow has no image of several channels but those of 8 bits.
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
    height, width = pixels.shape[:2]
    rows, columns = into
    if way == "pad":
        rows, columns = fit_size((height, width), into)
    elif way == "crop":
        rows, columns = covering((height, width), into)
    inner = scaled(pixels, (rows, columns))
    height, width = into
    top = abs(height - rows) // 2
    left = abs(width - columns) // 2
    if way != "pad":
        cropped = inner[top : top + height, left : left + width]
        return np.ascontiguousarray(cropped)
    whole = np.full((*into, *inner.shape[2:]), fill, inner.dtype)
    whole[top : top + rows, left : left + columns] = inner
    return whole


def _bilinear(pixels: Array, size: Size) -> Array:
    height, width = size
    picture = Image.fromarray(pixels)
    resized = picture.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(resized)


def _bilinear_exact(channel: Array, size: Size) -> Array:
    # Pillow's 32-bit float mode is the only one that filters 16-bit values without loss.
    resized = _bilinear(np.ascontiguousarray(channel, np.float32), size)
    if channel.dtype.kind != "f":
        full = np.iinfo(channel.dtype).max
        resized = np.rint(resized).clip(0, full)
    return resized.astype(channel.dtype, copy=False)


def _nearest(mask: Array, size: Size) -> Array:
    height, width = size
    picture = Image.fromarray(mask)
    resized = picture.resize((width, height), Image.Resampling.NEAREST)
    return np.asarray(resized)
