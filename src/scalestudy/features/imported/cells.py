"""Convert the cells of an imported file to the values of their roles."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any

from scalestudy.features.imported.columns import TIMES, ImportedColumn
from scalestudy.features.imported.file_rows import ImportedRow, printable_name

COUNTS = ("workers", "epochs", "per_worker_batch", "global_batch", "samples_processed")
WHOLE = (*COUNTS, "seed", "epoch")
POSITIVE = (*TIMES, "throughput", "throughput_per_worker")
MISSING = {"", "-", "–", "—", "?", "n/a", "na", "none", "null"}
"""Cells, in lower case, of what was not measured."""
LEAST, MOST = 1e-9, 1e15
"""Times and throughputs outside this range are mistakes and would overflow in ratios and squares."""
_CLOCK_TIME = re.compile(r"(?:(\d{1,4})-)?(\d{1,4}):([0-5]\d):([0-5]\d(?:\.\d+)?)")
_IN_THOUSANDS = re.compile(r"\d{1,3}(?:(?:,\d{3})+\.\d+|(?:,\d{3}){2,})")
"""`1,234.5` and `1,234,567`; not `1,234`, which may have a decimal comma."""
PointKey = tuple[Any, ...]
"""Strategy, workers and seed of a row, and what else tells rows apart."""


@dataclass
class ParsedRow:
    """A row with its values by role, and its values of columns that tell rows apart."""

    row: ImportedRow
    values: dict[str, Any]
    swept: dict[str, Any] = field(default_factory=dict)

    def cell(self, name: str) -> Any:
        """The cell of a column as the file has it; None if the row has none."""
        return self.row.cells.get(name)

    @property
    def point(self) -> PointKey:
        """Identifies rows that are repeats or epochs, so far as it is known."""
        values = self.values
        return (
            values.get("strategy"),
            values.get("workers"),
            values.get("seed"),
        )


def by_point(rows: Sequence[ParsedRow]) -> list[list[ParsedRow]]:
    """Group rows by strategy, workers, seed and swept values, in order."""
    groups: dict[PointKey, list[ParsedRow]] = defaultdict(list)
    for row in rows:
        settings = map(repr, row.swept.items())
        point = (*row.point, *settings)
        groups[point].append(row)
    return list(groups.values())


def by_point_and_cells(
    rows: Sequence[ParsedRow], names: Sequence[str]
) -> list[list[ParsedRow]]:
    """Group rows by strategy, workers, seed and the texts of these columns, in order."""
    groups: dict[PointKey, list[ParsedRow]] = defaultdict(list)
    for row in rows:
        settings = [str(row.cell(name)) for name in names]
        point = (*row.point, *settings)
        groups[point].append(row)
    return list(groups.values())


def of_several_rows(groups: Sequence[list[ParsedRow]]) -> list[list[ParsedRow]]:
    """Return the groups of two rows and more."""
    return [group for group in groups if len(group) > 1]


def cells_of(rows: Sequence[ParsedRow], name: str) -> list[Any]:
    """Return the cells of a column; None where a row has none."""
    return [row.cell(name) for row in rows]


def values_in(rows: Sequence[ParsedRow], role: str) -> list[Any]:
    """Return the values of a role; None where a row has none."""
    return [row.values.get(role) for row in rows]


def parse_rows(
    rows: Sequence[ImportedRow],
    columns: Mapping[str, ImportedColumn],
    defaults: Mapping[str, Any],
) -> tuple[list[ParsedRow], list[str]]:
    """Return the rows with valid cells, and why the others were left out ("line 7: …")."""
    parsed, skipped = [], []
    for row in rows:
        values = dict(defaults)
        try:
            values |= _values(row, columns)
        except ValueError as error:
            # Tables hold ERROR or OOM where a run failed: the row is named with its line, and the others count.
            skipped.append(f"{row.place}: {error}")
        else:
            parsed.append(ParsedRow(row, values))
    return parsed, skipped


def _values(row: ImportedRow, columns: Mapping[str, ImportedColumn]) -> dict[str, Any]:
    """Return the values of a row by role; raises `ValueError` with the reason if a cell is invalid."""
    values = {}
    for role, column in columns.items():
        cell = row.cells.get(column.name)
        if not _is_missing(cell):
            values[role] = _value(role, cell, column.factor)
    return values


def _is_missing(cell: Any) -> bool:
    if cell is None:
        return True
    return str(cell).strip().lower() in MISSING


def _value(role: str, cell: Any, factor: float) -> Any:
    """Convert a cell to the type of its role. Raises `ValueError` with the reason if it is invalid."""
    if role == "strategy":
        return printable_name(str(cell).strip())
    number = number_of(cell)
    if number is None and isinstance(cell, str):
        if role == "quality":
            number = number_of(cell.rstrip().removesuffix("%"))
        elif role in TIMES:
            # 1:02:03 is in hours, minutes and seconds, whatever unit the column's name states.
            number = _clock_time(cell)
            factor = 1.0
    if number is None:
        why = "which is not a number"
    else:
        why = _objection(role, number * factor)
    if number is None or why:
        raise ValueError(f"{role} is {printable_name(str(cell).strip())}, {why}")
    if role in WHOLE:
        return int(number)
    return number * factor


def _objection(role: str, number: float) -> str:
    """Return why a number cannot be a value of a role; "" if it can."""
    if role in WHOLE:
        return _objection_to_count(role, number)
    if isnan(number):
        return "which is not a number"
    if role in POSITIVE:
        if number <= 0:
            return "which is not above 0"
        if not LEAST < number < MOST:
            return "which is no plausible time or throughput"
    if role == "quality" and abs(number) > MOST:
        return f"beyond {MOST:g}"
    return ""


def _objection_to_count(role: str, number: float) -> str:
    objection = "which is not a count"
    # Beyond 2**53 a float no longer holds every whole number, and `int` of infinity raises.
    is_whole = abs(number) < 2**53 and number == int(number)
    if not is_whole:
        return objection
    # A seed and the number of an epoch may be 0, a count may not.
    if role in COUNTS and not 0 < number < MOST:
        return objection
    return ""


def _clock_time(cell: str) -> float | None:
    """Return the seconds of a time as queues print it, `1:02:03` or `2-01:02:03`; None if it is none."""
    match = _CLOCK_TIME.fullmatch(cell.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = [float(part or 0) for part in match.groups()]
    all_hours = days * 24 + hours
    all_minutes = all_hours * 60 + minutes
    return all_minutes * 60 + seconds


def number_of(cell: Any) -> float | None:
    """Return a cell as a number; None if it is none."""
    if isinstance(cell, str) and _IN_THOUSANDS.fullmatch(cell.strip()):
        cell = cell.replace(",", "")
    # `true` of JSON is no number, but float(True) would be 1.
    if isinstance(cell, bool):
        return None
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
