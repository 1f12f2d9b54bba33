"""Sealed lines read quickly: lines with the same keys and kinds of values have one shape.

A line that fits a shape and whose checksum is that of its values is what was written, and need not be parsed
as JSON to know it. Any other is for `reading.parse_record` to judge.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from scalestudy.seals import KEY

WHOLE, WORD, NULL = rb"(-?[0-9]+)", rb"(true|false)", rb"(null)"
NUMBER = rb'(-?[0-9][0-9.eE+-]*|"NaN"|"-?Infinity")'
TEXT = rb'("[ !#-\[\]-~]*")'
"""One that is written alike with and without escapes."""
NOT_FINITE = ("NaN", "Infinity", "-Infinity")
"""Numbers that are written as texts."""
MOST_SHAPES = 32
"""Shapes tried for a line: epochs with and without validation are two."""

Path = tuple[str, ...]
"""Where a value stands: ("validation", "loss")."""


class Shape:
    """How sealed lines with these keys are written.

    Args:
        table: What such a line holds, its checksum included.

    Raises:
        ValueError: It holds what a shape does not know (lists), or is not sealed at its end.
    """

    def __init__(self, table: dict[str, Any]) -> None:
        if not table or list(table)[-1] != KEY:
            raise ValueError("a line that does not end with its checksum")
        rest = {key: value for key, value in table.items() if key != KEY}
        self.paths: tuple[Path, ...] = tuple(_paths(rest))
        """Of the values, in the order in which they are written."""
        places = {path: index for index, path in enumerate(self.paths)}
        form, order = _canonical(rest, (), places)
        seal = b', "%s": "([0-9a-f]{64})"}' % KEY.encode()
        self._fit = re.compile(_written(rest)[:-1] + seal).fullmatch
        self._form = form
        self._pick = itemgetter(*order) if len(order) > 1 else lambda found: (found[order[0]],)

    def values(self, line: bytes) -> tuple[bytes, ...] | None:
        """The values of a line as they are written, in the order of `paths`; None if it does not fit."""
        fits = self._fit(line)
        if fits is None:
            return None
        found = fits.groups()
        canonical = self._form % self._pick(found)
        if hashlib.sha256(canonical).hexdigest().encode() != found[-1]:
            return None
        return found[:-1]


class Shapes:
    """The shapes of the lines seen so far, the last that fitted first.

    Args:
        sound: Whether a line is a record that can be gone by; asked of the first of each shape.
    """

    def __init__(self, sound: Callable[[bytes], bool] = bool) -> None:
        self._known: list[Shape] = []
        self._sound = sound

    def fit(self, line: bytes) -> tuple[tuple[Path, ...], tuple[bytes, ...]] | None:
        """Where the values of a sound line stand, and these; None of one that has to be parsed to know."""
        for index, shape in enumerate(self._known):
            values = shape.values(line)
            if values is not None:
                if index:
                    self._known.insert(0, self._known.pop(index))
                return shape.paths, values
        shape_of_it = _shape(line)
        values = shape_of_it.values(line) if shape_of_it else None
        if shape_of_it is None or values is None or not self._sound(line):
            return None
        self._known = [shape_of_it, *self._known[: MOST_SHAPES - 1]]
        return shape_of_it.paths, values


def _shape(line: bytes) -> Shape | None:
    try:
        table = json.loads(line)
        return Shape(table) if isinstance(table, dict) else None
    except (ValueError, RecursionError):
        return None


def _paths(table: dict[str, Any], above: Path = ()) -> Iterator[Path]:
    for key, value in table.items():
        if isinstance(value, list):
            raise ValueError("a list")
        if isinstance(value, dict):
            yield from _paths(value, (*above, key))
        else:
            yield (*above, key)


def _written(table: dict[str, Any]) -> bytes:
    """A pattern of the table as `seals.sealed` writes it on one line."""
    parts = [
        re.escape(json.dumps(key, ensure_ascii=False).encode())
        + b": "
        + (_written(value) if isinstance(value, dict) else _kind(value))
        for key, value in table.items()
    ]
    return rb"\{" + b", ".join(parts) + b"}"


def _kind(value: Any) -> bytes:
    """A pattern of values like this one."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return WORD
    if isinstance(value, int):
        return WHOLE
    return NUMBER if isinstance(value, float) or value in NOT_FINITE else TEXT


def _canonical(table: dict[str, Any], above: Path, places: dict[Path, int]) -> tuple[bytes, list[int]]:
    """What the checksum is of (see `seals.digest`), to be filled with values, and their places."""
    parts, order = [], []
    for key in sorted(table):
        value, path = table[key], (*above, key)
        name = json.dumps(key).replace("%", "%%").encode()
        form, inner = _canonical(value, path, places) if isinstance(value, dict) else (b"%b", [places[path]])
        parts.append(name + b":" + form)
        order += inner
    return b"{" + b",".join(parts) + b"}", order
