"""Tables as text: comma, semicolon, tab, or spaces between cells; a row a run, or a row an epoch."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from scalestudy.errors import UserError
from scalestudy.features.imported import columns as names
from scalestudy.features.imported import own_table, training_log
from scalestudy.features.imported.base import Head, Reader, Reading, Wanted
from scalestudy.features.imported.rows import Row, read_rows
from scalestudy.features.imported.text import lines, shown

SEPARATORS = ("\t", ";", ",")
MOST_ROWS = 1_000_000
_SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".log", "")


def _recognises(head: Head) -> bool:
    first = next((line for line in head.lines if not line.lstrip().startswith("#")), "")
    header = _split(first, separator(first))
    words = sum(any(letter.isalpha() for letter in name) for name in header)
    if head.path.suffix.lower() in (".csv", ".tsv"):
        return words > 0
    plain = head.path.suffix.lower() in _SUFFIXES and not first.lstrip().startswith(("{", "[", "<"))
    if not plain or len(header) < 2 or words < len(header):
        return False
    return separator(first) is not None or _has_numbers(header)


def _has_numbers(header: Sequence[str]) -> bool:
    """Whether words are names of columns, and not of a text."""
    try:
        roles = names.find(header, {}).keys()
    except UserError:
        return False
    return "workers" in roles and bool(roles & {"seconds", "epoch_seconds", "throughput"})


def _read(path: Path, wanted: Wanted) -> Reading:
    first = next((line for line in lines(path) if _content(line)), "")
    mark = separator(first)
    comma = mark == ";"
    skipped: list[str] = []
    rows = _rows(path, mark, skipped)
    if training_log.is_one(_split(first, mark)):
        found = training_log.read(path, rows, wanted, comma)
    else:
        table = _gathered(path, rows)
        if own_table.is_one(_split(first, mark)):
            found = own_table.read(path.name, table)
        else:
            found = read_rows(path.name, "table", table, wanted, comma)
    return Reading(found.facts, found.remarks, (*skipped, *found.skipped))


def separator(line: str) -> str | None:
    """What stands between the cells of a header; None for spaces."""
    return max(SEPARATORS, key=line.count) if any(mark in line for mark in SEPARATORS) else None


def _split(line: str, mark: str | None) -> list[str]:
    if mark is None:
        return line.split()
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=mark), [])]
    except csv.Error:
        return []


def _content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _rows(path: Path, mark: str | None, skipped: list[str]) -> Iterator[Row]:
    """Lines as cells by column; those of another length than the header are skipped and named."""
    header: list[str] | None = None
    for number, line in enumerate(lines(path), start=1):
        if not _content(line):
            continue
        cells = _split(line, mark)
        if header is None:
            header = cells
        elif cells == header:  # a log that was begun anew
            continue
        elif len(cells) != len(header):
            skipped.append(f"line {number}: {len(cells)} cells where the header has {len(header)}")
        else:
            yield Row(number, dict(zip(header, cells, strict=True)))


def _gathered(path: Path, rows: Iterator[Row]) -> Sequence[Row]:
    table = []
    for row in rows:
        table.append(row)
        if len(table) > MOST_ROWS:
            raise UserError(
                f"a table of at most {MOST_ROWS:,} rows, one a run",
                f"more in {shown(path.name)}",
                "Leave out the rows that are not needed.",
            )
    return table


READER = Reader("table (CSV, TSV), training log", _recognises, _read, "*.csv, *.tsv")
