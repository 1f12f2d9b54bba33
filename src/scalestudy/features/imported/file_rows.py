"""Rows of tables and logs as other programs write them: CSV with any usual separator, and JSON."""

import csv
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from scalestudy.util.errors import UserError
from scalestudy.util.printable import printable

LONGEST = 60
SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas"}
"""Separators of cells, with their names; if a header holds several equally often, the first one counts."""
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?\s*%?")
_DECIMAL_POINT = re.compile(r"[+-]?\d+\.\d+([eE][+-]?\d+)?\s*%?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+")
_BOTH_MARKS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d+")


class ImportedRow(NamedTuple):
    """A row of a file: its number from 1, its line if the file has lines, and its cells by column."""

    number: int
    line: int | None
    cells: Mapping[str, Any]

    @property
    def place(self) -> str:
        """The row in words: `line 7`."""
        return f"row {self.number}" if self.line is None else f"line {self.line}"


@dataclass
class FileRows:
    """The rows of a file.

    Attributes:
        header: Names of the columns; that of a first column without a name is "".
        rows: One for each row with as many cells as the header.
        form: How cells and numbers are written, if it is not the usual form; "" otherwise.
        malformed: Why other lines were left out ("line 7: …").
    """

    header: list[str]
    rows: list[ImportedRow]
    form: str = ""
    malformed: list[str] = field(default_factory=list)


def printable_name(text: str) -> str:
    """Return text from a file for a message: printable, and at most `LONGEST` characters before "…"."""
    clean = printable(text)
    return clean if len(clean) <= LONGEST else f"{clean[:LONGEST]}…"


def read_file_rows(path: Path) -> FileRows:
    """Read the rows of a file; the ending of its name decides how.

    Raises:
        UserError: The file is no table, or has no rows.
    """
    read = FORMS.get(path.suffix.lower())
    if read is None:
        action = (
            "Write a CSV file with the columns strategy, workers, training_seconds."
        )
        wanted = f"a table or a log: {', '.join(FORMS)}"
        raise UserError(
            wanted, f"{printable_name(path.name)}, which is none of these", action
        )
    found = read(path)
    if not found.rows:
        raise UserError(
            "a table with rows",
            f"none in {printable_name(path.name)}",
            "Name another file.",
        )
    return found


class _Line(NamedTuple):
    number: int
    cells: list[str]


def _read_csv(path: Path) -> FileRows:
    """Read a CSV file; lines that begin with `#` are comments, unless one is the header."""
    name = printable_name(path.name)
    try:
        text = path.read_bytes().decode("utf-8-sig")
        separator = _separator(text)
        reader = csv.reader(StringIO(text, newline=""), delimiter=separator)
        lines = [
            _Line(reader.line_num, [cell.strip() for cell in cells]) for cells in reader
        ]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(
            "a CSV file in UTF-8",
            f"{name}: {printable_name(str(error))}",
            "Save it as UTF-8.",
        ) from error
    header, body = _split_header([line for line in lines if any(line.cells)])
    _refuse_repeated([cell for cell in header if cell], path)
    whole = [line for line in body if len(line.cells) == len(header)]
    malformed = [
        f"line {line.number}: {len(line.cells)} cells where the header has {len(header)}"
        for line in body
        if len(line.cells) != len(header)
    ]
    commas = separator != "," and _has_decimal_commas(
        [line.cells for line in whole], path
    )
    # A first column without a name is pandas' index; others come from separators at the ends of lines.
    named = [place for place, cell in enumerate(header) if cell or place == 0]
    rows = []
    for number, line in enumerate(whole, start=1):
        cells = [_with_point(cell) for cell in line.cells] if commas else line.cells
        rows.append(
            ImportedRow(
                number, line.number, {header[place]: cells[place] for place in named}
            )
        )
    form = "" if separator == "," else f"Separated by {SEPARATORS[separator]}"
    form += ", with decimal commas." if commas else "." if form else ""
    return FileRows([header[place] for place in named], rows, form, malformed)


def _separator(text: str) -> str:
    """Return the most frequent separator of the first line that is no comment."""
    lines = (line for line in text.splitlines() if line.strip(" ,;\t\r"))
    first = next((line for line in lines if not line.lstrip(' "').startswith("#")), "")
    return max(SEPARATORS, key=first.count)


def _split_header(lines: Sequence[_Line]) -> tuple[list[str], list[_Line]]:
    """Return the header and the lines of data.

    A comment right before the first line is the header if it has as many cells, none of which is a number,
    and that line holds a number: `#GPUs,seconds` or NumPy's `# workers,seconds`.
    """
    comments = [line for line in lines if line.cells[0].startswith("#")]
    data = [line for line in lines if not line.cells[0].startswith("#")]
    if not data:
        return [], []
    before = [line for line in comments if line.number < data[0].number]
    if before:
        candidate = before[-1].cells
        alike = len(candidate) == len(data[0].cells) > 1
        if alike and _has_number(data[0].cells) and not _has_number(candidate):
            return candidate, data
    return data[0].cells, data[1:]


def _has_number(cells: Sequence[str]) -> bool:
    number = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")
    return any(number.fullmatch(cell) for cell in cells)


def _has_decimal_commas(lines: Sequence[Sequence[str]], path: Path) -> bool:
    """Whether numbers are written with a decimal comma.

    Raises:
        UserError: Some have a comma and others a point, so that 7.535 could be 7535.
    """
    cells = [cell for line in lines for cell in line]
    comma = next((cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)), None)
    both = next((cell for cell in cells if _BOTH_MARKS.fullmatch(cell)), None)
    if comma is None and both is None:
        return False
    for cell in cells:
        is_clear = both is not None and _THOUSANDS.fullmatch(cell)
        if _DECIMAL_POINT.fullmatch(cell) and not is_clear:
            seen = f"{comma or both} and {cell} in {printable_name(path.name)}"
            action = "Write all with a comma or all with a point, and no separators of thousands."
            raise UserError("numbers with one decimal mark", seen, action)
    return True


def _with_point(cell: str) -> str:
    """Write a number with a decimal point; other cells stay as they are."""
    if _BOTH_MARKS.fullmatch(cell) or _THOUSANDS.fullmatch(cell):
        cell = cell.replace(".", "")
    return cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell


def _refuse_repeated(names: Sequence[str], path: Path) -> None:
    """Raise `UserError` if two columns have the same name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        seen = f"{', '.join(map(printable_name, repeated[:5]))} twice in {printable_name(path.name)}"
        raise UserError("columns with different names", seen, "Rename a column.")


def _read_json(path: Path) -> FileRows:
    """Read a JSON list of objects, an object with such a list as `rows`, or an object of lists."""

    def cells(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _refuse_repeated([name for name, _ in pairs], path)
        return dict(pairs)

    try:
        document = json.loads(path.read_bytes(), object_pairs_hook=cells)
    except (ValueError, RecursionError) as error:
        seen = f"{printable_name(path.name)}: {printable_name(str(error))}"
        raise UserError("a JSON document", seen, "Correct the file.") from error
    if isinstance(document, dict) and "rows" in document:
        document = document["rows"]
    if isinstance(document, dict) and _are_columns(document):
        document = [
            dict(zip(document, values, strict=True))
            for values in zip(*document.values(), strict=True)
        ]
    if not isinstance(document, list) or not all(
        isinstance(row, dict) for row in document
    ):
        wanted = "a JSON list of objects, one for each row"
        raise UserError(
            wanted, printable_name(path.name), "Write it in this form, or as CSV."
        )
    rows = [
        ImportedRow(number, None, row) for number, row in enumerate(document, start=1)
    ]
    return FileRows(
        list(dict.fromkeys(name for row in rows for name in row.cells)), rows
    )


def _are_columns(document: Mapping[str, Any]) -> bool:
    """Whether an object has a list for each column, as the `history` of Keras's `fit` has."""
    lists = [values for values in document.values() if isinstance(values, list)]
    return len(lists) == len(document) and len({len(values) for values in lists}) == 1


FORMS = {".csv": _read_csv, ".tsv": _read_csv, ".json": _read_json}
