"""The meaning of the values of masks.

Masks contain 0 and full scale, or class indices 0..K-1 and 255 for ignored pixels, or colours of classes,
defined by `colours` under [data].
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from scalestudy.data.images.decode import (
    ColouredMaskError,
    is_colour,
    open_image,
    read_mask,
    read_pixels,
)
from scalestudy.data.images.glance import spread
from scalestudy.data.samples import IGNORE, MOST_CLASSES, Array
from scalestudy.util.errors import UserError
from scalestudy.util.text import join_first

ACCEPTED = "masks of 0 and 255, of 0 and 1, or of class indices 0, 1, 2, ... without gaps over the whole set"
_FULL_SCALES = (255, 65535)
_MOST_SHOWN = 8
_MOST_COLOURS = 64
"""Maximum number of colours to list as classes; more are those of smeared masks or of images."""
_OBJECTS = 5
"""Minimum number of the largest value that may number objects."""
_RUN = 3
"""Minimum mean number of values of a mask, without 0, that may number objects."""
IGNORED = "ignore"
"""Name in `colours` for pixels that count in nothing."""
NUMBERED = "If they number objects, save where any object is: numpy.where(mask > 0, 255, 0).astype('uint8')."
_NONE = IGNORE - 1
"""Index of colours of no class, while a mask is read."""
_MOST_CLASSES_SHOWN = 32
"""Number of values from which a mask without gaps probably numbers objects."""
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
    _values: list[tuple[int, ...]] = field(default_factory=list)
    """Values of each mask of class indices, without 0 and 255."""
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
        if self._is_binary(values):
            return self._binary_indices(mask, name, values)
        lowest, highest = values[0], values[-1]
        may_ignore = not self._binary and not _smeared(name, values)
        if highest == IGNORE and lowest >= 0 and may_ignore:
            self._ignoring.setdefault(name, values)
            values = values[:-1]
        elif lowest < 0 or highest >= MOST_CLASSES:
            raise _unexpected(name, values)
        all_values = self._ignoring.get(name, values)
        for value in values:
            self._first.setdefault(value, (name, all_values))
        labelled = tuple(filter(None, values))
        if labelled:
            self._values.append(labelled)
        return mask.astype(np.uint8)

    def _is_binary(self, values: tuple[int, ...]) -> bool:
        """Whether values are 0 and full scale, and may be: 255 may also be ignored pixels of indices."""
        full = values[-1]
        if self.indexed or full not in _FULL_SCALES:
            return False
        if not {0, full}.issuperset(values):
            return False
        return full != IGNORE or not self._ignoring

    def _binary_indices(
        self,
        mask: Array,
        name: str,
        values: tuple[int, ...],
    ) -> Array:
        full = values[-1]
        self._binary.setdefault(name, values)
        for value in values:
            index = int(value == full)
            self._first.setdefault(index, (name, values))
        inside: Array = mask == full
        return inside.astype(np.uint8)

    def class_names(self) -> list[str]:
        """Return the class names of the set: background and foreground, or the indices.

        Raises:
            UserError: If indices have gaps, binary masks and indices are mixed, or nothing is labelled.
        """
        present = sorted(self._first)
        for expected, value in enumerate(present):
            # Only a palette proves that values are indices; without one, a gap speaks against it.
            if value != expected and not self.indexed:
                name, values = self._first[value]
                raise _unexpected(name, values, missing=expected, present=present)
        if len(present) > 2 and self._binary:
            name, *_ = self._binary
            values = self._binary[name]
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
        if count == 2:
            return ["background", "foreground"]
        return [str(index) for index in range(count)]

    def number_objects(self) -> bool:
        """Whether values look like numbers of objects: many, without gaps in each mask, others in each."""
        runs = set()
        highest = 0
        total = 0
        for values in self._values:
            first = values[0]
            last = values[-1]
            if last - first >= len(values):
                return False  # a gap: objects are numbered one after another
            runs.add((first, last))
            highest = max(highest, last)
            total += len(values)
        masks = len(self._values)
        if masks < 2 or highest < _OBJECTS:
            return False
        # Classes are the same in most masks, numbers of objects are not.
        others_in_each = len(runs) >= min(_RUN, masks)
        return total / masks >= _RUN and others_in_each

    def meaning(self) -> str:
        """Describe the meaning of the values of all masks so far, in words; empty before the first mask."""
        if not self._first:
            return ""
        present = sorted(self._first)
        if self._binary:
            full = max(map(max, self._binary.values()))
            return f"masks of 0 and {full}, background and foreground"
        meaning = f"masks of class indices {present[0]} to {present[-1]}"
        if self._ignoring:
            meaning += f", {IGNORE} counts in nothing"
        return meaning


def _unexpected(
    name: str,
    values: tuple[int, ...],
    missing: int | None = None,
    present: Sequence[int] = (),
) -> UserError:
    received = f"{name} with values {_listed(values)}"
    if missing is not None:
        received += f", while no mask holds {missing}"
    colours: list[str] = []
    for value in present or values:
        if 0 <= value <= 255:
            grey = f"{value:02x}" * 3
            colours.append(f'class{len(colours)} = "#{grey}"')
    action = (
        "Renumber the classes from 0, or make the mask binary (0 and 255); or say what each value means: "
        f"`colours = {{ {', '.join(colours)} }}` under [data]."
    )
    # One number at most is missing, as after an object that was deleted.
    without_gaps = values[-1] - values[0] < len(values) + 1
    if _smeared(name, values):
        action = "JPEG smears the borders of a mask: save masks as PNG."
    elif len(values) > _MOST_CLASSES_SHOWN and without_gaps:
        action = f"{NUMBERED} {action}"
    return UserError(ACCEPTED, received, action)


def holds_indices(mask: Path) -> bool:
    """Whether a mask has a colour palette, and values besides 0 and 255."""
    try:
        with open_image(mask) as picture:
            palette = picture.mode == "P" and is_colour(picture)
        if not palette:
            return False
        values = read_mask(mask)
        return not np.isin(values, (0, IGNORE)).all()
    except UserError:
        return False  # reading the set refuses it by name


def _smeared(name: str, values: Sequence[int]) -> bool:
    return name.lower().endswith((".jpg", ".jpeg")) and len(values) > 2


def _listed(values: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, values[:_MOST_SHOWN]))
    if len(values) <= _MOST_SHOWN:
        return shown
    return f"{shown}, ... ({len(values)} in all)"


@dataclass(frozen=True)
class ObjectMasks:
    """The masks of the objects of one image, one file for each, of which the union is read."""

    files: tuple[Path, ...]

    def read(self) -> Array:
        """Return 1 inside any object, else 0, uint8 [H, W].

        Raises:
            UserError: If a file is damaged, of another size than the first, or not binary.
        """
        inside = np.zeros(0, bool)
        for file in self.files:
            mask = read_mask(file)
            if not inside.size:
                inside = np.zeros(mask.shape, bool)
            if mask.shape != inside.shape:
                size = "{} x {}".format(*mask.shape)
                first_size = "{} x {}".format(*inside.shape)
                raise UserError(
                    "masks of one size for the objects of one image",
                    f"{file} of {size} and {self.files[0]} of {first_size} pixels (height x width)",
                    "Save each mask at the size of its image.",
                )
            values = tuple(np.unique(mask).tolist())
            if len(values) > 2 or (len(values) == 2 and values[0] != 0):
                raise UserError(
                    "a binary mask for each object (0 outside, 255 or 1 inside)",
                    f"{file} with values {_listed(values)}",
                    "Save the mask of each object as a binary PNG.",
                )
            inside |= mask > 0
        return inside.astype(np.uint8)

    def __str__(self) -> str:
        return f"{self.files[0].parent}/"


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
        # A table of all colours: 16 MiB, and one lookup for each pixel.
        self._index_of = np.full(1 << 24, _NONE, np.uint8)
        of_colour: dict[str, str] = {}
        for name, colour in colours.items():
            other = of_colour.setdefault(colour.lower(), name)
            if other != name:
                raise UserError(
                    "a different colour for each class",
                    f"{colour} for {other!r} and {name!r} in `colours`",
                    "Give each class a colour of its own.",
                )
            packed = int(colour[1:], 16)
            if name.lower() == IGNORED:
                self._index_of[packed] = IGNORE
            else:
                self._index_of[packed] = self.names.index(name)
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
            raise UserError(
                "masks of 8-bit colours",
                f"{path} of {pixels.dtype}",
                "Save it as 8-bit PNG.",
            )
        height, width = pixels.shape[:2]
        # A grey mask has one channel, while its colours are written with three.
        packed = _packed(np.broadcast_to(pixels, (height, width, 3)))
        index: Array = self._index_of[packed]
        strange = index == _NONE
        if strange.any():
            raise StrangeColoursError({path: _count(packed[strange])}, len(self.names))
        return index


class StrangeColoursError(UserError):
    """Masks hold colours of no class.

    Args:
        pixels: Pixels of each such colour, by mask.
        classes: Number of classes that have a colour.
    """

    def __init__(self, pixels: dict[Path, Counter[int]], classes: int) -> None:
        self.pixels, self.classes = pixels, classes
        counts = sum(pixels.values(), Counter[int]())
        first, *others = pixels
        where = str(first)
        if others:
            where += f" and {len(others)} more masks"
        action = (
            f"Add them to `colours` under [data]: {_lines(counts, classes)} "
            f'("{IGNORED}" if one counts in nothing), or save PNG.'
        )
        if len(counts) > _MOST_COLOURS:
            action = "Save the masks as PNG, without smoothing: JPEG smears the borders of a mask."
        super().__init__(
            "masks in the colours of `colours`",
            f"{where} with {len(counts)} others: {_listed_colours(counts)}",
            action,
        )


def refuse_coloured(masks: Sequence[Path]) -> None:
    """Look at some masks, and refuse colours that no `colours` name, with a line to paste.

    Raises:
        UserError: If one of them holds colours. Damaged ones are left to the reading of the set.
    """
    coloured = []
    for path in spread(masks, MASKS_TRIED):
        try:
            read_mask(path)
        except ColouredMaskError:
            coloured.append(path)
        except UserError:
            continue
    if coloured:
        raise colours_to_name(coloured)


def colours_to_name(coloured: Sequence[Path]) -> UserError:
    """Return the error for masks of colours without `colours`: with the colours found in some of them."""
    counts = Counter[int]()
    for path in spread(coloured, MASKS_TRIED):
        counts += _count(_packed(read_pixels(path)))
    expected = "masks of class indices, or of 0 and 255, or `colours` under [data], the colour of each class"
    received = f"masks of colours such as {coloured[0]}, with {_listed_colours(counts)}"
    if len(counts) > _MOST_COLOURS:
        action = (
            f"{len(counts):,} colours are too many for classes: save the masks as PNG, without smoothing "
            "(JPEG smears their borders), or check that these are masks."
        )
    else:
        action = (
            f"Write under [data], with names of your own: colours = {{ {_lines(counts)} }}. "
            f'Call one "{IGNORED}" if it counts in nothing.'
        )
    return UserError(expected, received, action)


def _packed(pixels: Array) -> Array:
    """Return 0xRRGGBB of each pixel of [H, W, 3]."""
    # In 32 bits: 8 bits would overflow.
    factors = np.array([1 << 16, 1 << 8, 1], np.uint32)
    packed: Array = pixels.astype(np.uint32) @ factors
    return packed


def _count(packed: Array) -> Counter[int]:
    values, counts = np.unique(packed, return_counts=True)
    pixels_of = zip(values.tolist(), counts.tolist(), strict=True)
    return Counter(dict(pixels_of))


def _listed_colours(counts: Counter[int]) -> str:
    total = counts.total()
    shown = []
    for colour, count in counts.most_common():
        shown.append(f"#{colour:06x} ({count / total:.1%})")
    return join_first(shown, _MOST_SHOWN)


def _lines(counts: Counter[int], first: int = 0) -> str:
    """Return the colours as items of the table `colours`, the most frequent first."""
    lines = []
    for number, (colour, _) in enumerate(counts.most_common(), first):
        lines.append(f'class{number} = "#{colour:06x}"')
    return ", ".join(lines)
