"""Rows of CSV, JSON and Parquet files."""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalestudy.features.imported.columns import shown
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class ImportedRow:
    """A row of a table: its line, where the file has lines, and its cells by column."""

    line: int | None
    cells: Mapping[str, Any]


def rows_of(path: Path) -> tuple[list[ImportedRow], list[str]]:
    """Rows of a file, and lines that are none: "line 7: …".

    Raises:
        UserError: It is broken or empty.
    """
    skipped: list[str] = []
    rows = list(_FORMS[path.suffix.lower()](path, skipped))
    if not rows:
        raise UserError("a table with a row in it", f"none in {shown(path.name)}", "Name another file.")
    return rows, skipped


def _csv_rows(path: Path, skipped: list[str]) -> Iterator[ImportedRow]:
    """Lines as cells; those of another length than the header are skipped and named."""
    name, header = shown(path.name), list[str]()
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip() or line.lstrip().startswith("#"):
                    continue
                cells = [cell.strip() for cell in next(csv.reader([line]))]
                if not header:
                    header = cells
                    if len(set(header)) < len(header):
                        seen = f"a name twice in {name}"
                        raise UserError("columns of different names", seen, "Rename a column.")
                elif len(cells) == len(header):
                    yield ImportedRow(number, dict(zip(header, cells, strict=True)))
                else:
                    skipped.append(f"line {number}: {len(cells)} cells where the header has {len(header)}")
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError("a CSV file in UTF-8", f"{name}: {shown(str(error))}", "Save it as one.") from error


def _json_rows(path: Path, _: list[str]) -> Iterator[ImportedRow]:
    """A list of objects, or that of our own table.json."""
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        seen = f"{shown(path.name)}: {shown(str(error))}"
        raise UserError("a JSON document", seen, "Correct the file.") from error
    rows = document.get("rows") if isinstance(document, dict) else document
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        wanted = "a JSON list of objects, one for each row"
        raise UserError(wanted, shown(path.name), "Write it so, or as CSV.")
    for row in rows:
        yield ImportedRow(None, row)


def _parquet_rows(path: Path, _: list[str]) -> Iterator[ImportedRow]:
    import polars as pl

    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        seen = f"{shown(path.name)}: {shown(str(error))}"
        raise UserError("a Parquet file", seen, "Write it again, or as CSV.") from error
    for cells in frame.iter_rows(named=True):
        yield ImportedRow(None, cells)


_FORMS = {".csv": _csv_rows, ".json": _json_rows, ".parquet": _parquet_rows}
SUFFIXES = tuple(_FORMS)
