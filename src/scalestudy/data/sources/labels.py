"""Images with classes: in the names of their folders, or in a CSV table."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from scalestudy.config.settings import DataSettings
from scalestudy.data.sources.files import ListedSample, Tree, in_order, several, split_of
from scalestudy.util.errors import UserError

TABLES = (".csv", ".tsv")
_COLUMN_NAMES = {
    "file_column": """
        file filename file_name filepath file_path path image_path image image_name image_file
        image_id imageid img img_name name id id_code
    """,
    "label_column": "label labels class class_name target category label_name diagnosis species",
}
"""Usual names of columns; the first that a table has is used."""


def list_classes(tree: Tree) -> tuple[list[ListedSample], str]:
    """List the images in a folder for each class, perhaps inside of a folder for each split.

    Empty if one is named images/ or masks/, which means an incomplete pair of folders.
    """
    parts_of = {file: tree.relative(file).parts for file in tree.images}
    divided = any(len(parts) > 1 and split_of(parts[0]) for parts in parts_of.values())
    samples = []
    for file, parts in parts_of.items():
        split = split_of(parts[0]) if divided else ""
        inner = parts[1:] if divided else parts
        if split is not None and len(inner) > 1:
            samples.append(ListedSample(file, inner[0], split))
    if {"images", "masks"} & {str(sample.target).lower() for sample in samples}:
        return [], ""
    samples.sort(key=lambda sample: in_order(str(sample.target)))
    return samples, "one folder of images for each class"


def columns_of(table: Path, data: DataSettings) -> tuple[str, str] | None:
    """Return the columns of files and of classes, by the keys of [data] or by usual names; None without.

    Raises:
        UserError: If a column that [data] names does not exist.
    """
    try:
        with table.open(encoding="utf-8-sig", newline="", errors="replace") as stream:
            names = _rows(stream.readline(1_000_000)).fieldnames or []
    except (OSError, csv.Error):
        return None
    small = {name.strip().lower().replace(" ", "_").replace("-", "_"): name for name in reversed(names)}
    found = []
    for key, usual in _COLUMN_NAMES.items():
        given = getattr(data, key)
        if given is not None and given not in names:
            raise UserError(
                f"a column {given!r}, as set by {key} under [data]",
                f"{', '.join(map(repr, names))} in {table}",
                "Correct the key.",
            )
        found.append(given or next((small[name] for name in usual.split() if name in small), None))
    file, label = found
    return (file, label) if file and label else None


def _rows(text: str) -> "csv.DictReader[str]":
    """Read a table, whose separator is the most frequent one of its first line."""
    first, *_ = text.split("\n", 1)
    return csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=first.count), strict=True)


def list_table(table: Path, columns: tuple[str, str], tree: Tree) -> tuple[list[ListedSample], str]:
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
        if image is None or not label:
            missing.append(written or "a row without a file" if image is None else f"{written} (no class)")
            continue
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
            f"none for {several(missing)}",
            f"Put the files under {tree.root}, or remove their rows; `file_column` and `label_column` under "
            "[data] name other columns.",
        )
    where = f"files in the column {columns[0]!r}, classes in the column {columns[1]!r}"
    return list(samples.values()), f"{table.name}: {where}"


def _read(table: Path, columns: tuple[str, str]) -> Iterator[tuple[str, str]]:
    try:
        for row in _rows(table.read_text(encoding="utf-8-sig")):
            if None in row:
                raise ValueError(f"a row with more cells than columns: {', '.join(map(str, row.values()))}")
            file, label = ((row[name] or "").strip() for name in columns)
            yield file, label
    except (OSError, ValueError, csv.Error) as error:
        received = f"{table}: {str(error).splitlines()[0]}"
        raise UserError("a table in UTF-8 that can be read", received, "Correct the table.") from error


def _index(tree: Tree) -> dict[str, list[Path]]:
    """Return the images by path and by name, each with and without extension, in lower case."""
    index: dict[str, list[Path]] = defaultdict(list)
    for file in tree.images:
        path = tree.relative(file)
        for name in {path.as_posix(), path.with_suffix("").as_posix(), path.name, path.stem}:
            index[name.lower()].append(file)
    return index


def _find(written: str, index: dict[str, list[Path]], table: Path) -> Path | None:
    """Find an image by its path relative to the source, else by its name alone."""
    name = written.replace("\\", "/").lower()
    files = index.get(name) or index.get(name.rpartition("/")[2]) or []
    if len(files) > 1:
        raise UserError(
            f"one file for {written!r} of {table}",
            " and ".join(map(str, files[:2])),
            "Write paths relative to the source, with extensions.",
        )
    return files[0] if files else None
