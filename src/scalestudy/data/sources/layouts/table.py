"""Images with a table of their files and classes or masks: `labels.csv`, `train.csv`, `metadata.jsonl`."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scalestudy.data.images.masks import MaskFile
from scalestudy.data.sources.files import several
from scalestudy.data.sources.layouts.base import Item, Layout, Listed, Look, Scan
from scalestudy.data.sources.layouts.index import Index
from scalestudy.data.sources.layouts.names import split_in
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
USUAL = {
    "file": (
        "file", "filename", "file_name", "filepath", "file_path", "path", "image_path", "image", "image_name",
        "image_file", "image_id", "imageid", "img", "img_name", "name", "id", "id_code",
    ),
    "label": (
        "label", "labels", "class", "class_name", "target", "category", "label_name", "diagnosis", "species",
    ),
    "mask": ("mask", "mask_file", "mask_path", "mask_name", "segmentation", "mask_file_name"),
    "split": ("split", "set", "subset", "partition"),
    "group": ("group", "patient", "patient_id", "subject", "subject_id", "case", "case_id"),
}  # fmt: skip
_HEADER = 1_000_000
"""Bytes of the longest first line that is looked at."""


@dataclass(frozen=True)
class Columns:
    """The names of a table's columns_of by what they hold; `split` and `group` are None where there are none.

    Exactly one of `label` and `mask` is a name.
    """

    file: str
    label: str | None
    mask: str | None
    split: str | None
    group: str | None

    def __str__(self) -> str:
        columns = {
            "files": self.file,
            "classes": self.label,
            "masks": self.mask,
            "splits": self.split,
            "groups": self.group,
        }
        return ", ".join(
            f"{what} in the column {name!r}" for what, name in columns.items() if name is not None
        )


def columns_of(table: Path, data: DataSettings) -> Columns | None:
    """A table's columns_of by the keys of [data], else by usual names; None if it has no files or no targets.

    Only its first line is read.

    Raises:
        UserError: it has no column of a name that [data] says.
    """
    names = _column_names(table)
    columns: dict[str, str | None] = {}
    for what, usual in USUAL.items():
        given = getattr(data, f"{what}_column", None)
        if given is not None and given not in names:
            raise UserError(
                f"a column {given!r}, as {what}_column under [data] says",
                f"{', '.join(map(repr, names))} in {table}",
                "Correct the key.",
            )
        small = {name.strip().lower().replace(" ", "_").replace("-", "_"): name for name in reversed(names)}
        columns[what] = given or next((small[name] for name in usual if name in small), None)
    if data.mask_column is not None and data.label_column is None:
        columns["label"] = None
    elif columns["label"] is not None:
        columns["mask"] = None
    repeated = next((name for name in columns.values() if name is not None and names.count(name) > 1), None)
    if repeated is not None:
        raise UserError(
            "columns with a name each",
            f"{repeated!r} {names.count(repeated)} times in {table}",
            "Rename one.",
        )
    if columns["file"] is None or (columns["label"] is None and columns["mask"] is None):
        return None
    return Columns(columns["file"], columns["label"], columns["mask"], columns["split"], columns["group"])


def read_table(table: Path) -> "pl.DataFrame":
    """All read_table of a table, as texts without spaces around them; null where a cell is empty.

    Raises:
        UserError: it cannot be read.
    """
    import polars as pl

    try:
        if table.suffix.lower() == ".parquet":
            frame = pl.read_parquet(table)
        elif table.suffix.lower() == ".jsonl":
            frame = pl.read_ndjson(table)
        else:
            frame = pl.read_csv(table, infer_schema=False, separator=_separator(table), encoding="utf8-lossy")
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError("a table that can be read", f"{table}: {reason}", "Correct the table.") from error
    plain = [name for name, kind in frame.schema.items() if not kind.is_nested() and kind != pl.Binary]
    texts = frame.select(pl.col(plain).cast(pl.String).str.strip_chars())
    return texts.with_columns(pl.all().replace("", None))


def _column_names(table: Path) -> list[str]:
    try:
        if table.suffix.lower() == ".parquet":
            import polars as pl

            return list(pl.read_parquet_schema(table))
        with table.open(encoding="utf-8-sig", errors="replace") as stream:
            first = stream.readline(_HEADER)
        if table.suffix.lower() == ".jsonl":
            first_row: Any = json.loads(first)
            return list(first_row) if isinstance(first_row, dict) else []
        return next(csv.reader([first], delimiter=_separator(table)), [])
    except (OSError, ValueError, csv.Error, _polars_error()):
        return []


def _polars_error() -> type[Exception]:
    import polars as pl

    return pl.exceptions.PolarsError


def _separator(table: Path) -> str:
    with table.open(encoding="utf-8-sig", errors="replace") as stream:
        first = stream.readline(_HEADER)
    return max(",;\t", key=first.count)


NOT_LISTED = "in no row of the table"


class Sheet(NamedTuple):
    """A table of samples, its columns, and the split that its name or folder says."""

    path: Path
    columns: Columns
    split: str


def sheets(root: Look, data: DataSettings) -> list[Sheet]:
    """Tables of files and targets in a folder, or in the folders of its splits.

    Where one is the training set's by its name, those of no split are none of these: a sample submission.
    """
    tables = []
    for folder in (root, *root.folders.values()):
        split = "" if folder is root else split_in(folder.path.name)
        if folder is not root and not split:
            continue
        for name in folder.files:
            path = folder.path / name
            if path.suffix.lower() in SUFFIXES and path.is_file():
                columns = columns_of(path, data)
                if columns is not None:
                    tables.append(Sheet(path, columns, split or split_in(path.stem) or ""))
    named = [sheet for sheet in tables if sheet.split]
    return named if any(sheet.split == "train" for sheet in named) else tables


def list_sheets(tables: list[Sheet], scan: Scan) -> Listed:
    """The samples of tables; `scan.left` is told which images are in none of them.

    Raises:
        UserError: two tables for one split, rows without a file, files with two classes, or unknown splits.
    """
    root = scan.root.path
    _refuse_two(tables)
    index = Index(root)
    items: dict[Path, Item] = {}
    for sheet in tables:
        for item in _items(sheet, index):
            before = items.setdefault(item.image, item)
            if before.target != item.target or before.split != item.split:
                raise UserError(
                    "one class or mask for each file",
                    f"{before.target} and {item.target} for {item.image} in {sheet.path}",
                    "Keep one row for each file: samples have one class.",
                )
    taken = set(items) | {file for item in items.values() for file in _mask_files(item)}
    paths = [sheet.path for sheet in tables]
    index.leave_rest(taken, paths, NOT_LISTED, scan.left)
    if not items:
        raise UserError(
            "a table with a row for each sample", f"no row in {paths[0]}", "Add rows, or name another table."
        )
    names = ", ".join(path.relative_to(root).as_posix() for path in paths)
    return Listed(list(items.values()), f"{names}: {tables[0].columns}", sources=paths)


def _items(sheet: Sheet, index: Index) -> list[Item]:
    columns = sheet.columns
    wanted = [columns.file, columns.label or columns.mask or "", columns.split, columns.group]
    frame = read_table(sheet.path)
    items: list[Item] = []
    missing: list[str] = []
    for row in frame.select([name for name in dict.fromkeys(wanted) if name]).iter_rows(named=True):
        file, target = row[columns.file], row[wanted[1] or ""]
        image = index.find(file, sheet.path, sheet.split) if file else None
        mask = index.find(target, sheet.path, sheet.split) if columns.mask and target else None
        if image is None or target is None or (columns.mask and mask is None):
            missing.append(
                f"{file or 'a row without a file'}" + (f" ({target or 'without a value'})" if image else "")
            )
            continue
        split = sheet.split if columns.split is None else _split(row[columns.split], sheet)
        group = row[columns.group] if columns.group else None
        items.append(Item(image, MaskFile(mask) if mask else target, split, group))
    if missing:
        raise UserError(
            f"a file and a {'mask' if columns.mask else 'class'} for every row of {sheet.path}",
            f"none for {several(missing)}",
            f"Put the files under {index.root}, or remove their rows; `file_column` and `label_column` under "
            "[data] name other columns.",
        )
    return items


def _split(text: str | None, sheet: Sheet) -> str:
    split = split_in(text or "")
    if split is None:
        raise UserError(
            "train, val or test in every row of the column of splits",
            f"{text!r} in {sheet.path}",
            "Correct the table, or name another column as `split_column` under [data].",
        )
    return split


def _mask_files(item: Item) -> tuple[Path, ...]:
    return () if isinstance(item.target, str) else item.target.files


def _refuse_two(tables: list[Sheet]) -> None:
    seen: dict[tuple[str, Path], Sheet] = {}
    for sheet in tables:
        other = seen.setdefault((sheet.split, sheet.path.parent), sheet)
        if other is not sheet:
            raise UserError(
                "one table of files and classes",
                f"{other.path.name} and {sheet.path.name} in {sheet.path.parent}",
                f'Name one of them as the source: source = "{other.path}".',
            )


def _list(scan: Scan) -> Listed:
    return list_sheets(sheets(scan.root, scan.data), scan)


TABLE = Layout(
    name="table",
    words="images with a table of their files and classes, such as labels.csv",
    recognise=lambda root, data: bool(sheets(root, data)),
    list=_list,
    whole=True,
)
