"""Several files at once, read into one study; what cannot be read is named."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.analysis.runs import Run
from scalestudy.errors import UserError
from scalestudy.features.imported.base import Reading, Wanted
from scalestudy.features.imported.find_files import Place, places
from scalestudy.features.imported.made_runs import runs_of
from scalestudy.features.imported.readers import READERS, reader_of
from scalestudy.features.imported.text import head_of, shown

MOST_NAMED = 8
"""Lines or files that are named; of more it is said how many."""


@dataclass(frozen=True)
class Elsewhere:
    """What was found in files of others.

    Attributes:
        runs: Of all files.
        readings: How each file was understood, and what in it was not, in sentences.
    """

    runs: tuple[Run, ...]
    readings: tuple[str, ...]


def gather(sources: Sequence[str], wanted: Wanted | None = None) -> Elsewhere:
    """Read files, folders and patterns of files.

    Raises:
        UserError: A file that was named cannot be read, or none of a folder can.
    """
    wanted = wanted or Wanted()
    found = places(sources)
    read: list[tuple[Place, str, Reading]] = []
    left: list[str] = []
    for place in found:
        try:
            reading = read_file(place.path, wanted)
        except UserError as error:
            if place.named:
                raise
            left.append(f"{shown(place.path.name)}: {error.received}")
        else:
            read.append((place, reading.facts[0].source.kind if reading.facts else "", reading))
    if not read:
        raise UserError(
            f"a file of numbers: {_forms()}",
            f"none among {len(found)} files{_named(left)}",
            "Look into docs/imported.md for what is read.",
        )
    labels = _labels([place.path for place, _, _ in read])
    facts = [
        replace(each, source=replace(each.source, file=label))
        for label, (_, _, reading) in zip(labels, read, strict=True)
        for each in reading.facts
    ]
    if not facts:
        raise UserError(
            "a run in what was read",
            f"none{_named([s for r in read for s in r[2].skipped])}",
            "Mend the lines.",
        )
    runs, remarks = runs_of(facts, wanted)
    said = _said([(label, what, reading) for label, (_, what, reading) in zip(labels, read, strict=True)])
    return Elsewhere(tuple(runs), (*said, *remarks, *_left(left)))


def read_file(path: Path, wanted: Wanted) -> Reading:
    """What a file says.

    Raises:
        UserError: It is of no known form, cannot be opened, or leaves several meanings.
    """
    try:
        reader = reader_of(head_of(path))
        if reader is None:
            raise UserError(
                f"a file of numbers: {_forms()}",
                f"{shown(path.name)}, which is none",
                "Write a CSV file with the columns strategy, workers, seconds.",
            )
        return reader.read(path, wanted)
    except OSError as error:
        raise UserError(
            "a file that can be read",
            f"{shown(path.name)}: {error.strerror}",
            "Correct its name or permissions.",
        ) from error


def _forms() -> str:
    return ", ".join(READERS.get(name).what for name in READERS.names())


def _labels(paths: Sequence[Path]) -> list[str]:
    """Names that tell the files apart: short where that is enough."""
    short = [path.name for path in paths]
    if len(set(short)) == len(short):
        return [shown(name) for name in short]
    root = os.path.commonpath([path.absolute().parent for path in paths])
    return [shown(os.path.relpath(path.absolute(), root)) for path in paths]


def _said(readings: Sequence[tuple[str, str, Reading]]) -> list[str]:
    """Sentences on each file; files that were understood alike share them."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for label, what, reading in readings:
        alike.setdefault((what, reading.remarks), []).append(label)
    found = [f"{_several(labels)} ({what}): {' '.join(remarks)}" for (what, remarks), labels in alike.items()]
    for label, _, reading in readings:
        if reading.skipped:
            found.append(f"{label}: left out{_named(reading.skipped)}.")
    return found


def _several(labels: Sequence[str]) -> str:
    rest = f" and {len(labels) - MOST_NAMED} more" if len(labels) > MOST_NAMED else ""
    return ", ".join(labels[:MOST_NAMED]) + rest


def _left(files: Sequence[str]) -> list[str]:
    return [f"Files left out{_named(files)}."] if files else []


def _named(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    rest = f"; and {len(lines) - MOST_NAMED} more" if len(lines) > MOST_NAMED else ""
    return f": {'; '.join(lines[:MOST_NAMED])}{rest}"
