"""The epochs of a run, as columns: of ten thousand runs they fit into memory, and are read in seconds."""

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, overload

from scalestudy.files import contents
from scalestudy.study.reading import Found, parse_record
from scalestudy.study.records import EpochOutcome, EpochRecord
from scalestudy.study.shapes import Path as Where
from scalestudy.study.shapes import Shapes

FILE = "epochs.jsonl"
Column = Sequence[Any]
WITHOUT_SHAPE = 255
"""In place of a block's number."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Epochs of one shape."""

    paths: tuple[Where, ...]
    columns: tuple[Column, ...]

    def record(self, index: int) -> EpochRecord:
        table: dict[str, Any] = {}
        for path, column in zip(self.paths, self.columns, strict=True):
            inside = table
            for key in path[:-1]:
                inside = inside.setdefault(key, {})
            inside[path[-1]] = column[index]
        return EpochRecord.model_validate(table)

    def __reduce__(self) -> Any:
        return _block, (self.paths, self.columns)


class Epochs(Sequence[EpochRecord]):
    """Records of epochs, each made when it is asked for; `column` gives one value of all without making any.

    Args:
        blocks: Epochs by their shape.
        which: The block of each epoch, in their order.
        others: Epochs that have no shape, by their place in that order.
    """

    __slots__ = ("_blocks", "_others", "_which")

    def __init__(
        self,
        blocks: tuple[_Block, ...] = (),
        which: bytes = b"",
        others: dict[int, EpochRecord] | None = None,
    ) -> None:
        self._blocks, self._which, self._others = blocks, which, others or {}

    def __len__(self) -> int:
        return len(self._which)

    @overload
    def __getitem__(self, index: int) -> EpochRecord: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[EpochRecord, ...]: ...
    def __getitem__(self, index: int | slice) -> EpochRecord | tuple[EpochRecord, ...]:
        if isinstance(index, slice):
            return tuple(self[place] for place in range(*index.indices(len(self))))
        place = range(len(self))[index]
        if place in self._others:
            return self._others[place]
        block = self._which[place]
        return self._blocks[block].record(self._which[:place].count(block))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((self._which, tuple(self._others)))

    def __repr__(self) -> str:
        return f"<{len(self)} epochs>"

    def value(self, index: int, *path: str) -> Any:
        """One value of one epoch, None where it lacks it: `value(-1, "loss")`."""
        place = range(len(self))[index]
        if place in self._others:
            return value_of(self._others[place], path)
        block = self._blocks[number := self._which[place]]
        if path not in block.paths:
            return None
        return _number(block.columns[block.paths.index(path)][self._which[:place].count(number)])

    def column(self, *path: str) -> list[Any]:
        """One value of all epochs, None where one lacks it: `column("validation", "loss")`."""
        if len(self._blocks) == 1 and not self._others:  # as nearly always
            (block,) = self._blocks
            if path not in block.paths:
                return [None] * len(self)
            column = block.columns[block.paths.index(path)]
            return column.tolist() if isinstance(column, array) else list(map(_number, column))
        found: list[Iterator[Any] | None] = [
            iter(block.columns[block.paths.index(path)]) if path in block.paths else None
            for block in self._blocks
        ]
        return [
            value_of(self._others[place], path)
            if place in self._others
            else None
            if (held := found[block]) is None
            else _number(next(held))
            for place, block in enumerate(self._which)
        ]


def read_epochs(run: Path) -> tuple[Epochs, list[str]]:
    """The epochs of a run's folder that can be gone by, and what is wrong with the others."""
    try:
        lines = contents(run / FILE).split(b"\n")
    except FileNotFoundError:
        return Epochs(), []
    except OSError as error:
        return Epochs(), [f"{FILE} cannot be read: {error.strerror}"]
    shapes: list[tuple[Where, ...]] = []
    written: list[list[tuple[bytes, ...]]] = []
    which, others, wrong = bytearray(), dict[int, EpochRecord](), list[str]()
    last: tuple[Where, ...] = ()
    place = 0
    for number, line in enumerate(lines, start=1):
        fits = _SHAPES.fit(line) if line and len(shapes) < WITHOUT_SHAPE else None
        if fits is not None:
            paths, values = fits
            if paths is not last:  # comparing them takes longer than all else
                if paths not in shapes:
                    shapes.append(paths)
                    written.append([])
                last, place = paths, shapes.index(paths)
            which.append(place)
            written[place].append(values)
        elif line:
            found = _parsed(line, number)
            if found.record is not None:
                others[len(which)] = found.record
                which.append(WITHOUT_SHAPE)
            else:
                wrong.append(found.why)
    blocks = tuple(
        _block(paths, tuple(map(_column, zip(*rows, strict=True))))
        for paths, rows in zip(shapes, written, strict=True)
    )
    return Epochs(blocks, bytes(which), others), wrong


def judged(line: bytes, number: int) -> Found[EpochRecord]:
    """What a line of the file is found to be; its number counts from 1."""
    fits = _SHAPES.fit(line)
    if fits is None:
        return _parsed(line, number)
    return Found("sound", _block(fits[0], tuple((_parsed_value(value),) for value in fits[1])).record(0))


def _parsed(line: bytes, number: int) -> Found[EpochRecord]:
    return parse_record(line, EpochRecord, f"{FILE}, line {number}")


_SHAPES = Shapes(sound=lambda line: not _parsed(line, 0).damaged)
_WORDS = {b"true": True, b"false": False, b"null": None}


@cache
def _same(paths: tuple[Where, ...]) -> tuple[Where, ...]:
    return paths


def _block(paths: tuple[Where, ...], columns: tuple[Column, ...]) -> _Block:
    return _Block(_same(paths), columns)


def _column(values: Sequence[bytes]) -> Column:
    for code, kind in (("q", int), ("d", float)):
        try:
            return array(code, map(kind, values))
        except (ValueError, OverflowError):
            continue
    return tuple(map(_parsed_value, values))


def _parsed_value(value: bytes) -> Any:
    return _WORDS[value] if value in _WORDS else json.loads(value)


def _number(value: Any) -> Any:
    # "NaN" as a text keeps the files strict JSON.
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


def value_of(record: EpochOutcome, path: Sequence[str]) -> Any:
    """A value of a record by where it stands; None if it lacks it."""
    found: Any = record
    for key in path:
        found = found.get(key) if isinstance(found, dict) else getattr(found, key, None)
    return found
