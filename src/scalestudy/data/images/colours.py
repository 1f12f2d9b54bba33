"""Masks that encode classes as colours, defined by `colours` under [data] or a table beside the masks."""

import csv
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from scalestudy.data.images.decode import COLOUR_MODES, read_pixels
from scalestudy.data.images.masks import MaskFile
from scalestudy.data.images.open import opened
from scalestudy.data.types import IGNORE, Array, Size
from scalestudy.util.errors import UserError

TABLES = ("class_dict.csv", "label_colors.txt", "label_colours.txt", "classes.csv", "colormap.txt")
"""File names of colour tables, as in CamVid and similar data sets."""
IGNORED = "ignore"
_NONE = IGNORE - 1
_LINE = re.compile(r"(?P<first>.*?)(?P<rgb>\d{1,3}[\s,;]+\d{1,3}[\s,;]+\d{1,3})(?P<last>.*)")


@dataclass(frozen=True)
class Colours:
    """The class of each colour.

    Attributes:
        of_class: (name, 0xRRGGBB) in the order of the classes; a class may have several colours.
        origin: Where the colours are defined, for messages.
        file: Table of colours; None for `colours` under [data].

    Raises:
        UserError: If two classes have the same colour, or there are too few or too many classes.
    """

    of_class: tuple[tuple[str, int], ...]
    origin: str
    file: Path | None = None

    def __post_init__(self) -> None:
        of_colour: dict[int, str] = {}
        for name, colour in self.of_class:
            if of_colour.setdefault(colour, name) != name:
                raise UserError(
                    "a different colour for each class",
                    f"#{colour:06x} for {of_colour[colour]!r} and {name!r} in {self.origin}",
                    "Give each class a colour of its own.",
                )
        if not 1 < len(self.names) < _NONE:
            raise UserError(
                f"colours of 2 to {_NONE - 1} classes",
                f"{len(self.names)} in {self.origin}",
                "List each class with its colour, including the background.",
            )

    @property
    def names(self) -> list[str]:
        """Class names, without "ignore"."""
        return list(dict.fromkeys(name for name, _ in self.of_class if name.lower() != IGNORED))

    def indices(self, pixels: Array, name: str) -> Array:
        """Convert 8-bit colours [H, W, 3] to class indices uint8 [H, W], with 255 for ignored pixels.

        Raises:
            UserError: If a colour belongs to no class.
        """
        packed = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
        index: Array = self._index_of[packed]
        if (index == _NONE).any():
            strange, counts = np.unique(packed[index == _NONE], return_counts=True)
            most = int(strange[np.argmax(counts)])
            raise UserError(
                f"masks in the colours of {self.origin}",
                f"{name} with {len(strange)} others, most often #{most:06x} ({counts.max()} pixels)",
                f'Name it in `colours` under [data] ("{IGNORED}" if it counts in nothing), or save PNG.',
            )
        return index

    @cached_property
    def _index_of(self) -> Array:
        table = np.full(1 << 24, _NONE, np.uint8)
        for name, colour in self.of_class:
            table[colour] = IGNORE if name.lower() == IGNORED else self.names.index(name)
        return table


@dataclass(frozen=True)
class ColouredMask(MaskFile):
    """A mask stored as a colour image."""

    colours: Colours

    def read(self, size: Size) -> Array:
        pixels = read_pixels(self.path).values[0]
        if pixels.shape[2] == 1:
            pixels = np.repeat(pixels, 3, axis=2)
        if pixels.dtype != np.uint8 or pixels.shape[2] != 3:
            raise UserError(
                "masks of 8-bit colours", f"{self.path} of {pixels.dtype}", "Save it as 8-bit PNG."
            )
        return self.colours.indices(pixels, str(self.path))


def of_settings(colours: dict[str, str]) -> Colours:
    """Return the colours of `colours` under [data]; raises the errors of `Colours`."""
    return Colours(tuple((name, int(text[1:], 16)) for name, text in colours.items()), "`colours`")


def beside(folders: list[Path]) -> Colours | None:
    """Return the colours of the first table in these folders, or None; raises the errors of `Colours`."""
    for file in (folder / name for folder in folders for name in TABLES):
        if file.is_file():
            lines = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
            classes = [item for item in map(_class_of, lines) if item is not None]
            if classes:
                return Colours(tuple(classes), file.name, file)
    return None


def is_coloured(mask: Path) -> bool:
    """Whether a mask is stored in colours, not as grey values or palette indices."""
    try:
        with opened(mask) as picture:
            return picture.mode in COLOUR_MODES
    except UserError:
        return False  # reading the set refuses it by name


def _class_of(line: str) -> tuple[str, int] | None:
    """Parse a line such as `64 128 64  Animal` or `Animal,64,128,64`; None for a heading."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        return None
    fields = next(csv.reader([match["first"] or match["last"]]), [""])
    name = next((field.strip() for field in fields if field.strip()), "")
    red, green, blue = map(int, re.findall(r"\d+", match["rgb"]))
    if not name or max(red, green, blue) > 255:
        return None
    return name, red << 16 | green << 8 | blue
