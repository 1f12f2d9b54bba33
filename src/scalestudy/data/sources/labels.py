"""Images with their classes in a CSV table."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from scalestudy.config.settings import DataSettings
from scalestudy.data.sources.files import ListedSample, Tree, composed
from scalestudy.util.errors import UserError
from scalestudy.util.text import join_first

TABLES = (".csv", ".tsv")
_COLUMN_NAMES = {
    "file_column": """
        file filename file_name filepath file_path path image_path image image_name image_file
        image_id imageid img img_name name id id_code
    """,
    "label_column": "label labels class class_name target category label_name diagnosis species",
}
"""Usual names of columns; the first that a table has is used."""
_DECIMAL = re.compile(r"[-+]?\d*[.,]\d+(e[-+]?\d+)?", re.IGNORECASE)
_TRIED = 200
"""Rows of a table that are read to find columns that would do."""


class TableColumns(NamedTuple):
    """A column of files, whether its name is usual, and columns that may hold their classes, best first."""

    file: str
    file_is_usual: bool
    labels: list[str]


def columns_that_would_do(table: Path, tree: Tree) -> TableColumns | None:
    """Find a column that names images of a folder, by its first cells, and columns of repeated values.

    None if there are none, or the table cannot be read.
    """
    try:
        # Excel begins a file in UTF-8 with a byte order mark.
        with table.open(encoding="utf-8-sig", newline="") as stream:
            text = "".join(islice(stream, _TRIED + 1))
        rows = list(_rows(text))
    except (OSError, ValueError, csv.Error):
        return None
    if not rows:
        return None
    cells = {}
    for name in filter(None, rows[0]):
        cells[name] = [_cell(row, name) for row in rows]
    file = _column_of_files(cells, tree)
    if file is None:
        return None
    labels = []
    for name, column in cells.items():
        if name != file and _may_be_classes(column):
            labels.append(name)
    if not labels:
        return None
    labels.sort(key=lambda name: len(set(cells[name])))
    usual_names = _COLUMN_NAMES["file_column"].split()
    return TableColumns(file, _plain(file) in usual_names, labels)


def _column_of_files(cells: Mapping[str, list[str]], tree: Tree) -> str | None:
    """Return the column that names most images; None if none names images in half of its rows."""
    index = _index(tree)
    best = None
    most = 0
    for name, column in cells.items():
        found = len([cell for cell in column if _files(cell, index)])
        if found > most and 2 * found >= len(column):
            best = name
            most = found
    return best


def column_names(table: Path) -> str:
    """Return the names in the first line of a table, for a message."""
    try:
        with table.open(encoding="utf-8-sig", newline="") as stream:
            names = _rows(stream.readline()).fieldnames or []
    except (OSError, ValueError, csv.Error):
        return "no columns that could be read"
    if not names:
        return "no columns"
    return f"the columns {join_first([repr(name) for name in names])}"


def _may_be_classes(cells: list[str]) -> bool:
    values = set(cells)
    most = max(2, len(cells) // 2)
    if not 2 <= len(values) <= most:
        return False
    return "" not in values and not hold_decimals(cells)


def hold_decimals(values: Collection[str]) -> bool:
    """Whether most of these texts are numbers with decimals: 0.37, 12,5."""
    decimals = list(filter(_DECIMAL.fullmatch, values))
    return 2 * len(decimals) > len(values)


def columns_of(table: Path, data: DataSettings) -> tuple[str, str] | None:
    """Return the columns of files and of classes, by the keys of [data] or by usual names; None without.

    Raises:
        UserError: If a column that [data] names does not exist.
    """
    try:
        with table.open(
            encoding="utf-8-sig",
            newline="",
            errors="replace",
        ) as stream:
            # One line, and of that not more: the file may be huge and no table at all.
            names = _rows(stream.readline(1_000_000)).fieldnames or []
    except (OSError, csv.Error):
        return None
    found = []
    for key, usual in _COLUMN_NAMES.items():
        given = getattr(data, key)
        if given is not None and given not in names:
            raise UserError(
                f"a column {given!r}, as set by {key} under [data]",
                f"{', '.join(map(repr, names))} in {table}",
                "Correct the key.",
            )
        found.append(given or _first_usual(usual.split(), names))
    file, label = found
    if file and label:
        return file, label
    return None


def _first_usual(usual: Iterable[str], names: Sequence[str]) -> str | None:
    """Return the name of the table's column that is the first of these usual ones in any spelling."""
    # Reversed, since of columns with equal spellings the first counts.
    written = {_plain(name): name for name in reversed(names)}
    for name in usual:
        if name in written:
            return written[name]
    return None


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _cell(row: Mapping[str, str], column: str) -> str:
    # None if the row has fewer cells than the first line.
    written = row[column] or ""
    return written.strip()


def _rows(text: str) -> "csv.DictReader[str]":
    """Read a table, whose separator is the most frequent one of its first line."""
    first, *_ = text.split("\n", 1)
    separator = max(",;\t", key=first.count)
    # Strict, since a quote that never ends would swallow the rest of the table.
    return csv.DictReader(io.StringIO(text), delimiter=separator, strict=True)


def list_table(
    table: Path,
    columns: tuple[str, str],
    tree: Tree,
) -> tuple[list[ListedSample], str]:
    """List the images that a table names, with their classes.

    Raises:
        UserError: If the table cannot be read, if a row has no class or no image, or if an image has two
            classes.
    """
    index = _index(tree)
    samples: dict[Path, ListedSample] = {}
    missing = []
    for written, label in _read(table, columns):
        image = _find(written, index, table)
        if image is None:
            missing.append(written or "a row without a file")
            continue
        if not label:
            missing.append(f"{written} (no class)")
            continue
        # A table may name a file several times, if its class is the same.
        before = samples.setdefault(image, ListedSample(image, label))
        if before.target != label:
            raise UserError(
                "one class for each file",
                f"{before.target} and {label} for {image} in {table}",
                "Keep one row for each file.",
            )
    if missing:
        raise UserError(
            f"a file and a class for every row of {table}",
            f"none for {join_first(missing)}",
            f"Put the files under {tree.root}, or remove their rows; `file_column` and `label_column` under "
            "[data] name other columns.",
        )
    file, label = columns
    where = f"files in the column {file!r}, classes in the column {label!r}"
    return list(samples.values()), f"{table.name}: {where}"


def _read(table: Path, columns: tuple[str, str]) -> Iterator[tuple[str, str]]:
    file_column, label_column = columns
    try:
        for row in _rows(table.read_text(encoding="utf-8-sig")):
            # `DictReader` puts the cells beyond the first line's columns under None.
            if None in row:
                cells = ", ".join(map(str, row.values()))
                raise ValueError(f"a row with more cells than columns: {cells}")
            file = _cell(row, file_column)
            label = _cell(row, label_column)
            yield file, composed(label)
    except (OSError, ValueError, csv.Error) as error:
        reason, *_ = str(error).splitlines()
        raise UserError(
            "a table in UTF-8 that can be read",
            f"{table}: {reason}",
            "Correct the table.",
        ) from error


def _index(tree: Tree) -> dict[str, list[Path]]:
    """Return the images by path and by name, each with and without extension, in lower case."""
    index: dict[str, list[Path]] = defaultdict(list)
    for file in tree.images:
        path = tree.relative(file)
        bare = path.with_suffix("")
        # A set, since these are equal for files directly in the folder or without an extension.
        names = {path.as_posix(), bare.as_posix(), path.name, path.stem}
        for name in names:
            index[composed(name).lower()].append(file)
    return index


def _files(written: str, index: dict[str, list[Path]]) -> list[Path]:
    """Find images by their path relative to the source, else by their name alone."""
    # Tables written on Windows have backslashes.
    path = composed(written).replace("\\", "/").lower()
    _, _, name = path.rpartition("/")
    return index.get(path) or index.get(name) or []


def _find(written: str, index: dict[str, list[Path]], table: Path) -> Path | None:
    files = _files(written, index)
    if len(files) > 1:
        raise UserError(
            f"one file for {written!r} of {table}",
            " and ".join(map(str, files[:2])),
            "Write paths relative to the source, with extensions.",
        )
    if not files:
        return None
    return files[0]
