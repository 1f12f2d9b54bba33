"""The form that all images of a set get: their channels, their type, and what of it models see."""

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
"""Share of a set's images that are odd if they are unlike all others."""

FULL = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}
_WIDENED = 257
"""Of 8 bits to 16: 0 stays 0, 255 becomes 65535, and models see the same number."""


def stored_as(array: Array, dtype: np.dtype[Any], name: str) -> Array:
    """The numbers as `dtype`: whole numbers exactly, floating-point ones rounded; `name` is for messages.

    Raises:
        UserError: there are other things than real numbers, NaN or infinity before the cast or after it, or
            integers that the type cannot hold.
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
    """Numbers that `scale` takes into [0, 1] as those that `own_scale` takes there, in the type `dtype`."""
    if inputs.dtype == np.dtype(dtype) and scale == own_scale:
        return inputs
    values = inputs.astype(np.float64) * (scale / own_scale)
    if np.dtype(dtype).kind in "iu":
        values = np.rint(values).clip(0, np.iinfo(dtype).max)
    return values.astype(dtype)


@dataclass(frozen=True)
class Form:
    """What images become.

    Attributes:
        channels: Of every image; greys fill all of them.
        dtype: As stored: uint8, uint16 or float32.
        value_range: Lowest and highest value, which become 0 and 1; None without it.
    """

    channels: int
    dtype: np.dtype[Any]
    value_range: Range | None = None

    @property
    def scale(self) -> float:
        """Multiplies stored values into what models see."""
        if self.dtype.kind == "f":
            return 1.0
        return 1 / (self.value_range[1] if self.value_range else FULL[self.dtype])

    def of(self, values: Array, name: str) -> Array:
        """Images [..., channels] as they are stored; `name` is for messages.

        Raises:
            UserError: They hold what their type cannot: NaN, infinity, whole numbers beyond float32's.
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
    """The form of a set.

    All of 8 bits stay so, and all of 16; of both, those of 8 are widened. Other whole numbers and
    floating-point ones become float32. One coloured image makes grey ones coloured.

    Raises:
        UserError: Types or channels differ otherwise, or the range is none.
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
    """Images of 8 bits in a set of 16."""
    narrow = np.dtype(np.uint8)
    return [header for header in headers if header.dtype == narrow and form.dtype == np.uint16]


def described(headers: Sequence[Header]) -> str:
    """Types and channels of a set's files, the most frequent first: "16-bit grey (12), 8-bit grey (3)"."""
    kinds = Counter((header.dtype, header.channels) for header in headers)
    names = {"u": "{}-bit", "i": "{}-bit signed", "f": "{}-bit float"}
    return ", ".join(
        f"{names[dtype.kind].format(dtype.itemsize * 8)} "
        f"{ {1: 'grey', 3: 'colour'}.get(channels, f'of {channels} channels') } ({count})"
        for (dtype, channels), count in kinds.most_common()
    )


def odd_ones(headers: Sequence[Header]) -> dict[str, list[Header]]:
    """The few images of another format or size than nearly all: what they are, in words, and which."""
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
