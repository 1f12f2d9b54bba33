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

FORMS = (".csv", ".tsv", ".json")
"""Endings of the names of files that can be read."""
LONGEST = 60
SEPARATORS = {";": "semicolons", "\t": "tabs", ",": "commas"}
"""Separators of cells, with their names; if a header holds several equally often, the first one counts."""
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?\s*%?")
_DECIMAL_POINT = re.compile(r"[+-]?\d+\.\d+([eE][+-]?\d+)?\s*%?")
# European spreadsheets write 1.234,5 for 1234.5.
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
        if self.line is None:
            return f"row {self.number}"
        return f"line {self.line}"


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
    if len(clean) <= LONGEST:
        return clean
    return f"{clean[:LONGEST]}…"


def read_file_rows(path: Path) -> FileRows:
    """Read the rows of a file; the ending of its name decides how.

    Raises:
        UserError: The file is no table, or has no rows.
    """
    ending = path.suffix.lower()
    if ending not in FORMS:
        action = (
            "Write a CSV file with the columns strategy, workers, training_seconds."
        )
        wanted = f"a table or a log: {', '.join(FORMS)}"
        raise UserError(
            wanted,
            f"{printable_name(path.name)}, which is none of these",
            action,
        )
    if ending == ".json":
        found = _read_json(path)
    else:
        found = _read_csv(path)
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
        # Excel begins files in UTF-8 with a byte-order mark.
        text = path.read_bytes().decode("utf-8-sig")
        separator = _separator(text)
        # Unchanged line ends, since `csv` itself tells those in quoted cells from those of rows.
        reader = csv.reader(StringIO(text, newline=""), delimiter=separator)
        lines = []
        for cells in reader:
            stripped = list(map(str.strip, cells))
            # A line of separators alone, as spreadsheets write below a table, is no row.
            if any(stripped):
                lines.append(_Line(reader.line_num, stripped))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(
            "a CSV file in UTF-8",
            f"{name}: {printable_name(str(error))}",
            "Save it as UTF-8.",
        ) from error
    header, body = _split_header(lines)
    _refuse_repeated([cell for cell in header if cell], path)
    whole = []
    malformed = []
    for line in body:
        if len(line.cells) == len(header):
            whole.append(line)
        else:
            found = f"{len(line.cells)} cells where the header has {len(header)}"
            malformed.append(f"line {line.number}: {found}")
    # Where commas separate cells, none can be a decimal mark.
    commas = separator != "," and _has_decimal_commas(whole, path)
    # A first column without a name is pandas' index; others come from separators at the ends of lines.
    named = [place for place, cell in enumerate(header) if cell or place == 0]
    rows = []
    for number, line in enumerate(whole, start=1):
        values = line.cells
        if commas:
            values = list(map(_with_point, values))
        by_column = {header[place]: values[place] for place in named}
        rows.append(ImportedRow(number, line.number, by_column))
    columns = [header[place] for place in named]
    return FileRows(columns, rows, _form(separator, commas=commas), malformed)


def _form(separator: str, *, commas: bool) -> str:
    """Say how cells and numbers are written; "" for the usual form."""
    if separator == ",":
        return ""
    separated = f"Separated by {SEPARATORS[separator]}"
    if commas:
        return f"{separated}, with decimal commas."
    return f"{separated}."


def _separator(text: str) -> str:
    """Return the most frequent separator of the first line that is no comment."""
    # A file without such a line gets the first of `SEPARATORS`, and one column is one, whatever is in it.
    counted = ""
    for line in text.splitlines():
        is_empty = not line.strip(" ,;\t\r")
        if not is_empty and not line.lstrip(' "').startswith("#"):
            counted = line
            break
    return max(SEPARATORS, key=counted.count)


def _split_header(lines: Sequence[_Line]) -> tuple[list[str], list[_Line]]:
    """Return the header and the lines of data.

    A comment right before the first line is the header if it has as many cells, none of which is a number,
    and that line holds a number: `#GPUs,seconds` or NumPy's `# workers,seconds`.
    """
    data: list[_Line] = []
    candidate: list[str] = []
    for line in lines:
        if not line.cells[0].startswith("#"):
            data.append(line)
        elif not data:
            candidate = line.cells
    if not data:
        return [], []
    first = data[0].cells
    alike = len(candidate) == len(first) > 1
    if alike and _has_number(first) and not _has_number(candidate):
        return candidate, data
    return first, data[1:]


def _has_number(cells: Sequence[str]) -> bool:
    number = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")
    return any(number.fullmatch(cell) for cell in cells)


def _has_decimal_commas(lines: Sequence[_Line], path: Path) -> bool:
    """Whether numbers are written with a decimal comma.

    Raises:
        UserError: Some have a comma and others a point, so that 7.535 could be 7535.
    """
    cells: list[str] = []
    for line in lines:
        cells += line.cells
    comma = next(filter(_DECIMAL_COMMA.fullmatch, cells), None)
    both = next(filter(_BOTH_MARKS.fullmatch, cells), None)
    if comma is None and both is None:
        return False
    for cell in cells:
        if not _DECIMAL_POINT.fullmatch(cell):
            continue
        # Beside 1.234,5 a point separates thousands: 7.535 is 7535 without a doubt.
        is_clear = both is not None and _THOUSANDS.fullmatch(cell)
        if not is_clear:
            seen = f"{comma or both} and {cell} in {printable_name(path.name)}"
            action = "Write all with a comma or all with a point, and no separators of thousands."
            raise UserError("numbers with one decimal mark", seen, action)
    return True


def _with_point(cell: str) -> str:
    """Write a number with a decimal point; other cells stay as they are."""
    if _BOTH_MARKS.fullmatch(cell) or _THOUSANDS.fullmatch(cell):
        cell = cell.replace(".", "")
    if _DECIMAL_COMMA.fullmatch(cell):
        cell = cell.replace(",", ".")
    return cell


def _refuse_repeated(names: Sequence[str], path: Path) -> None:
    """Raise `UserError` if two columns have the same name."""
    repeated = []
    for name, count in Counter(names).items():
        if count > 1:
            repeated.append(printable_name(name))
    if repeated:
        seen = f"{', '.join(repeated[:5])} twice in {printable_name(path.name)}"
        raise UserError("columns with different names", seen, "Rename a column.")


def _read_json(path: Path) -> FileRows:
    """Read a JSON list of objects, an object with such a list as `rows`, or an object of lists."""

    def cells(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # JSON's parser keeps the last of two equal keys without a word.
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
        columns = document
        document = []
        for values in zip(*columns.values(), strict=True):
            row_of_columns = dict(zip(columns, values, strict=True))
            document.append(row_of_columns)
    if not _is_list_of_objects(document):
        wanted = "a JSON list of objects, one for each row"
        raise UserError(
            wanted,
            printable_name(path.name),
            "Write it in this form, or as CSV.",
        )
    rows = []
    # Objects may lack cells, so the header is that of all of them, in the order of their first appearance.
    header: dict[str, None] = {}
    for number, row in enumerate(document, start=1):
        rows.append(ImportedRow(number, None, row))
        header |= dict.fromkeys(row)
    return FileRows(list(header), rows)


def _is_list_of_objects(document: Any) -> bool:
    if not isinstance(document, list):
        return False
    return all(isinstance(row, dict) for row in document)


def _are_columns(document: Mapping[str, Any]) -> bool:
    """Whether an object has a list for each column, as the `history` of Keras's `fit` has."""
    lengths = set()
    for values in document.values():
        if not isinstance(values, list):
            return False
        lengths.add(len(values))
    return len(lengths) == 1
