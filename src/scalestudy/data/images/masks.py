"""The meaning of the values of masks.

Masks contain 0 and full scale, or class indices 0..K-1 and 255 for ignored pixels, or colours of classes,
defined by `colours` under [data].
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from scalestudy.data.images.decode import is_colour, open_image, read_mask, read_pixels
from scalestudy.data.samples import IGNORE, MOST_CLASSES, Array
from scalestudy.util.errors import UserError

ACCEPTED = "masks of 0 and 255, of 0 and 1, or of class indices 0, 1, 2, ... without gaps over the whole set"
_FULL_SCALES = (255, 65535)
_MOST_SHOWN = 8
MASKS_TRIED = 10
"""Number of masks to check for a palette: the first may be damaged, or hold one class by chance."""


@dataclass
class MaskValues:
    """Collects the values of all masks of a set, and names the first mask that breaks a rule.

    Attributes:
        indexed: Whether masks are known to contain class indices. Then classes may be missing, and 255 is
            ignored.
    """

    indexed: bool = False
    _binary: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Masks with full-scale values; if there is one, the set must be binary."""
    _ignoring: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Masks of class indices that also contain 255 for ignored pixels."""
    _first: dict[int, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """For each class index, the first mask that contains it, with all its values."""

    def indices(self, mask: Array, name: str) -> Array:
        """Convert one integer mask [H, W] to class indices (uint8).

        Raises:
            UserError: If the mask mixes full scale with other values, or has negative or too large values.
        """
        if mask.dtype == np.uint8:  # several times as fast
            unique = np.flatnonzero(np.bincount(mask.ravel(), minlength=256))
        else:
            unique = np.unique(mask)
        values = tuple(unique.tolist())
        full = values[-1]
        if (
            not self.indexed
            and full in _FULL_SCALES
            and set(values) <= {0, full}
            and not (full == IGNORE and self._ignoring)
        ):
            binary: Array = (mask == full).astype(np.uint8)
            self._binary.setdefault(name, values)
            for value in values:
                self._first.setdefault(int(value == full), (name, values))
            return binary
        if full == IGNORE and values[0] >= 0 and not (self._binary or _smeared(name, values)):
            self._ignoring.setdefault(name, values)
            values = values[:-1]
        elif values[0] < 0 or full >= MOST_CLASSES:
            raise _unexpected(name, values)
        for value in values:
            self._first.setdefault(value, (name, self._ignoring.get(name, values)))
        return mask.astype(np.uint8)

    def class_names(self) -> list[str]:
        """Return the class names of the set: background and foreground, or the indices.

        Raises:
            UserError: If indices have gaps, binary masks and indices are mixed, or nothing is labelled.
        """
        present = sorted(self._first)
        for expected, value in enumerate(present):
            if value != expected and not self.indexed:
                raise _unexpected(*self._first[value], missing=expected, present=present)
        if len(present) > 2 and self._binary:
            name, values = next(iter(self._binary.items()))
            other, indices = self._first[2]
            raise UserError(
                ACCEPTED,
                f"{name} with values {_listed(values)}, but {other} with values {_listed(indices)}",
                "Make all masks binary, or all class indices.",
            )
        if len(present) < 2:
            name, values = self._first[present[0]]
            raise UserError(
                "masks that label at least 2 classes",
                f"{_listed(values)} as the only value of all masks (the first is {name})",
                "Check that the masks belong to these images and were not saved empty.",
            )
        count = present[-1] + 1
        return ["background", "foreground"] if count == 2 else [str(index) for index in range(count)]

    def meaning(self) -> str:
        """Describe the meaning of the values of all masks so far, in words; empty before the first mask."""
        if not self._first:
            return ""
        present = sorted(self._first)
        if self._binary:
            full = max(max(values) for values in self._binary.values())
            return f"masks of 0 and {full}, background and foreground"
        ignored = f", {IGNORE} counts in nothing" if self._ignoring else ""
        return f"masks of class indices {present[0]} to {present[-1]}{ignored}"


def _unexpected(
    name: str, values: tuple[int, ...], missing: int | None = None, present: Sequence[int] = ()
) -> UserError:
    absent = "" if missing is None else f", while no mask holds {missing}"
    levels = [f"{value:02x}" for value in present or values if 0 <= value <= 255]
    colours = ", ".join(f'class{index} = "#{level * 3}"' for index, level in enumerate(levels))
    action = (
        "Renumber the classes from 0, or make the mask binary (0 and 255); or say what each value means: "
        f"`colours = {{ {colours} }}` under [data]."
    )
    if _smeared(name, values):
        action = "JPEG smears the borders of a mask: save masks as PNG."
    return UserError(ACCEPTED, f"{name} with values {_listed(values)}{absent}", action)


def holds_indices(mask: Path) -> bool:
    """Whether a mask has a colour palette, and values besides 0 and 255."""
    try:
        with open_image(mask) as picture:
            palette = picture.mode == "P" and is_colour(picture)
        return palette and not set(np.unique(read_mask(mask)).tolist()) <= {0, IGNORE}
    except UserError:
        return False  # reading the set refuses it by name


def _smeared(name: str, values: Sequence[int]) -> bool:
    return name.lower().endswith((".jpg", ".jpeg")) and len(values) > 2


def _listed(values: tuple[int, ...]) -> str:
    shown = ", ".join(str(value) for value in values[:_MOST_SHOWN])
    return shown if len(values) <= _MOST_SHOWN else f"{shown}, ... ({len(values)} in all)"


IGNORED = "ignore"
_NONE = IGNORE - 1


class Colours:
    """The class of each colour in masks.

    Attributes:
        names: Class names in order, without "ignore".

    Args:
        colours: `colours` under [data], "#rrggbb" by class.

    Raises:
        UserError: If two classes have the same colour, or there are too few or too many classes.
    """

    def __init__(self, colours: dict[str, str]) -> None:
        self.names = [name for name in colours if name.lower() != IGNORED]
        self._index_of = np.full(1 << 24, _NONE, np.uint8)
        of_colour: dict[str, str] = {}
        for name, colour in colours.items():
            if (other := of_colour.setdefault(colour.lower(), name)) != name:
                raise UserError(
                    "a different colour for each class",
                    f"{colour} for {other!r} and {name!r} in `colours`",
                    "Give each class a colour of its own.",
                )
            ignored = name.lower() == IGNORED
            self._index_of[int(colour[1:], 16)] = IGNORE if ignored else self.names.index(name)
        if not 1 < len(self.names) < _NONE:
            raise UserError(
                f"colours of 2 to {_NONE - 1} classes",
                f"{len(self.names)} in `colours`",
                "List each class with its colour, including the background.",
            )

    def read(self, path: Path) -> Array:
        """Read a mask of colours (or greys) as class indices uint8 [H, W], with 255 for ignored pixels.

        Raises:
            UserError: If it is damaged, not of 8 bits, or a colour belongs to no class.
        """
        pixels = read_pixels(path)
        if pixels.dtype != np.uint8 or pixels.shape[2] not in (1, 3):
            raise UserError("masks of 8-bit colours", f"{path} of {pixels.dtype}", "Save it as 8-bit PNG.")
        pixels = np.broadcast_to(pixels, (*pixels.shape[:2], 3))
        packed = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
        index: Array = self._index_of[packed]
        if (index == _NONE).any():
            strange, counts = np.unique(packed[index == _NONE], return_counts=True)
            most = int(strange[np.argmax(counts)])
            raise UserError(
                "masks in the colours of `colours`",
                f"{path} with {len(strange)} others, most often #{most:06x} ({counts.max()} pixels)",
                f'Name it in `colours` under [data] ("{IGNORED}" if it counts in nothing), or save PNG.',
            )
        return index
