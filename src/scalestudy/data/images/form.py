"""The common form of a set's images: channels, stored type and scale."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalestudy.data.images.decode import Header
from scalestudy.data.types import Array
from scalestudy.util.errors import UserError

Range = tuple[float, float]
MOST_ODD = 0.02
"""Maximum share of images of unusual format or size that are reported as odd."""

FULL = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}
_WIDENED = 257
"""Factor from 8 to 16 bits: 255 becomes 65535, so that the value scaled to [0, 1] stays the same."""


def stored_as(array: Array, dtype: np.dtype[Any], name: str) -> Array:
    """Convert numbers to `dtype`: integers exactly, floats with rounding; `name` is for messages.

    Raises:
        UserError: If values are not real numbers, are NaN or infinite before or after the conversion, or do
            not fit an integer `dtype`.
    """
    if array.dtype.kind not in "biuf":
        raise UserError("real numbers", f"{name} of type {array.dtype}", f"Store it as {dtype}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise UserError("finite numbers", f"{name} with NaN or infinity", "Repair or remove it.")
    if array.dtype == dtype:
        return array
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


def as_stored(inputs: Array, scale: float, dtype: str, own_scale: float) -> Array:
    """Convert numbers of scale `scale` to `dtype` and `own_scale`; a scale is the factor to [0, 1]."""
    if inputs.dtype == np.dtype(dtype) and scale == own_scale:
        return inputs
    values = inputs.astype(np.float64) * (scale / own_scale)
    if np.dtype(dtype).kind in "iu":
        values = np.rint(values).clip(0, np.iinfo(dtype).max)
    return values.astype(dtype)


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
            return values.astype(np.uint16) * _WIDENED if values.dtype != self.dtype else values
        floats = stored_as(values, self.dtype, name)
        if values.dtype.kind in "iu" and not (floats.astype(values.dtype) == values).all():
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
    dtype = max(types, key=lambda dtype: dtype.itemsize)
    stored = dtype if set(types) <= set(FULL) and whole_range else np.dtype(np.float32)
    return Form(max(channels), stored, value_range)


def widened(headers: Sequence[Header], form: Form) -> list[Header]:
    """Return the 8-bit images of a set stored as 16 bits."""
    narrow = np.dtype(np.uint8)
    return [header for header in headers if header.dtype == narrow and form.dtype == np.uint16]


def described(headers: Sequence[Header]) -> str:
    """Describe types and channels of a set, most frequent first: "16-bit grey (12), 8-bit grey (3)"."""
    kinds = Counter((header.dtype, header.channels) for header in headers)
    names = {"u": "{}-bit", "i": "{}-bit signed", "f": "{}-bit float"}
    return ", ".join(
        f"{names[dtype.kind].format(dtype.itemsize * 8)} "
        f"{ {1: 'grey', 3: 'colour'}.get(channels, f'of {channels} channels') } ({count})"
        for (dtype, channels), count in kinds.most_common()
    )


def odd_ones(headers: Sequence[Header]) -> dict[str, list[Header]]:
    """Return the few images whose format or size differs from nearly all others, by description."""
    odd: dict[str, list[Header]] = {}
    formats = [header.format for header in headers]
    sizes = [f"{header.size[0]} x {header.size[1]} pixels" for header in headers]
    for kinds in (formats, sizes):
        usual, count = Counter(kinds).most_common(1)[0]
        if 0 < len(headers) - count <= len(headers) * MOST_ODD:
            for header, kind in zip(headers, kinds, strict=True):
                if kind != usual:
                    odd.setdefault(f"of {kind}, while {count} are of {usual}", []).append(header)
    return odd
