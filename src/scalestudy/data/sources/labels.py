"""Images with classes: in folder names, in file names (`label_pattern` under [data]), or in a table.

A table (`labels.csv`, `train.csv`, `metadata.jsonl`) may also name masks.
"""

import codecs
import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scalestudy.config.settings import DataSettings
from scalestudy.data.images.masks import MaskFile
from scalestudy.data.sources.files import (
    Directory,
    ImageIndex,
    image_files,
    images_below,
    is_mask_folder,
    role,
    several,
    split_in,
    without_images,
)
from scalestudy.data.sources.listing import Layout, ListedSample, Listing, Scan
from scalestudy.data.sources.pairs import USUAL, patterns
from scalestudy.util.errors import UserError

NO_CLASS = "without a class in their names"


def _holds_classes(folder: Directory) -> bool:
    # images/ or masks/ means an incomplete pair of folders, not classes.
    if USUAL.keys() & map(str.lower, folder.folders):
        return False
    return any(inner.images for inner in folder.folders.values())


def plausible(scan: Scan) -> bool:
    """Whether there are two or more folders of images that may be classes although there is a table."""
    return any(
        sum(bool(folder.images) and role(name) == (None, None) for name, folder in part.folders.items()) > 1
        for part in scan.parts.values()
    )


def _of_classes(part: Directory) -> dict[str, Directory]:
    """Return folders by class. Folders named like masks are not classes unless another name has "mask"."""
    classes = {name: folder for name, folder in part.folders.items() if not is_mask_folder(name)}
    return part.folders if not classes or any("mask" in name.lower() for name in classes) else classes


def _list_classes(scan: Scan) -> Listing:
    samples: list[ListedSample] = []
    for split, part in scan.parts.items():
        folders = _of_classes(part)
        if bare := [folder for folder in folders.values() if not (folder.images or folder.folders)]:
            raise without_images(bare)
        scan.left.add_others(part.path, [folder.path for folder in folders.values()])
        for name, folder in folders.items():
            samples += [ListedSample(image, name, split) for image in image_files(folder.path, scan.left)]
    first = _of_classes(next(iter(scan.parts.values())))
    return Listing(samples, f"{CLASSES.words}{_other_reading(list(first.values()))}", list(first))


def _other_reading(folders: list[Directory]) -> str:
    """Say how two folders with the same file names become images and masks."""
    stems = [{name.rpartition(".")[0] for name in folder.images} for folder in folders]
    if len(folders) != 2 or stems[0] != stems[1]:
        return ""
    return f" (if these are images and their masks: {patterns(*folders)} under [data])"


CLASSES = Layout(
    name="classes",
    words="one folder of images for each class",
    list=_list_classes,
    recognise=lambda folder, _: _holds_classes(folder),
)


def _list_labels(scan: Scan) -> Listing:
    pattern = re.compile(scan.data.label_pattern or "")
    samples: list[ListedSample] = []
    nameless: list[str] = []
    for split, part in scan.parts.items():
        for file in images_below(part.path):
            name = file.relative_to(part.path).as_posix()
            match = pattern.search(name)
            label = match and (match[1] if pattern.groups else match[0])
            if label is not None:
                samples.append(ListedSample(file, label, split))
            elif split in ("", "train"):
                nameless.append(name)
            else:
                scan.left.add(NO_CLASS, file)
    if nameless or not samples:
        raise UserError(
            f"a class in the name of every image, as label_pattern = {pattern.pattern!r} finds it",
            f"{several(nameless) or 'no images'} in {scan.root.path}",
            "Correct the pattern (its first group is the class), or move these files away.",
        )
    return Listing(samples, f"classes in the files' names, as label_pattern = {pattern.pattern!r} finds them")


LABELS = Layout(
    name="labels", words="images whose names hold their classes", list=_list_labels, keys=("label_pattern",)
)


SUFFIXES = (".csv", ".tsv", ".jsonl")
_COLUMN_NAMES = {
    "file": """
        file filename file_name filepath file_path path image_path image image_name image_file
        image_id imageid img img_name name id id_code
    """,
    "label": "label labels class class_name target category label_name diagnosis species",
    "mask": "mask mask_file mask_path mask_name segmentation mask_file_name",
    "split": "split set subset partition",
    "group": "group patient patient_id subject subject_id case case_id",
}
USUAL_COLUMNS = {what: names.split() for what, names in _COLUMN_NAMES.items()}
"""Usual names of columns, by what they hold; the first that a table has is used."""
_HEADER = 1_000_000
"""Maximum characters to read of the first line."""
NOT_LISTED = "in no row of the table"


class TableColumns(NamedTuple):
    """The names of a table's columns by content. Exactly one of `label` and `mask` is not None."""

    file: str
    label: str | None
    mask: str | None
    split: str | None
    group: str | None

    def __str__(self) -> str:
        holds = zip(("files", "classes", "masks", "splits", "groups"), self, strict=True)
        return ", ".join(f"{what} in the column {name!r}" for what, name in holds if name is not None)


class Sheet(NamedTuple):
    """A table of samples, its columns, and the split in its name or folder."""

    path: Path
    columns: TableColumns
    split: str


def columns_of(table: Path, data: DataSettings) -> TableColumns | None:
    """Return a table's columns by the keys of [data], else by usual names; None without files or targets.

    Only the first line is read.

    Raises:
        UserError: If a column that [data] names does not exist, or a name occurs twice.
    """
    names = _column_names(table)
    columns: dict[str, str | None] = {}
    small = {name.strip().lower().replace(" ", "_").replace("-", "_"): name for name in reversed(names)}
    for what, usual in USUAL_COLUMNS.items():
        given = getattr(data, f"{what}_column", None)
        if given is not None and given not in names:
            raise UserError(
                f"a column {given!r}, as set by {what}_column under [data]",
                f"{', '.join(map(repr, names))} in {table}",
                "Correct the key.",
            )
        columns[what] = given or next((small[name] for name in usual if name in small), None)
    by_mask = data.mask_column is not None and data.label_column is None
    if by_mask or columns["label"] is not None:
        columns["label" if by_mask else "mask"] = None
    repeated = next((name for name in columns.values() if name is not None and names.count(name) > 1), None)
    if repeated is not None:
        received = f"{repeated!r} {names.count(repeated)} times in {table}"
        raise UserError("a name for each column", received, "Rename one.")
    file = columns.pop("file")
    if file is None or (columns["label"] is None and columns["mask"] is None):
        return None
    return TableColumns(file, **columns)


def _read_table(table: Path, names: list[str]) -> Iterator[dict[str, str | None]]:
    """Read columns of a table row by row as stripped strings; empty cells are None."""
    _refuse_other_texts(table)
    try:
        with table.open(encoding="utf-8-sig", newline="") as stream:
            if table.suffix.lower() == ".jsonl":
                for line in filter(str.strip, stream):
                    row = json.loads(line)
                    yield {name: _text(row.get(name)) for name in names}
                return
            reader = csv.reader(stream, delimiter=_separator(_first_line(table)), strict=True)
            header = next(reader)
            for cells in filter(None, reader):
                if len(cells) != len(header):
                    raise ValueError(f"{len(cells)} cells in line {reader.line_num}, {len(header)} columns")
                yield {name: _text(cells[header.index(name)]) for name in names}
    except (OSError, ValueError, AttributeError, csv.Error) as error:
        received = f"{table}: {str(error).splitlines()[0]}"
        raise UserError("a table that can be read", received, "Correct the table.") from error


def _text(value: object) -> str | None:
    text = value if isinstance(value, str) else json.dumps(value)
    return None if value is None else text.strip() or None


def _column_names(table: Path) -> list[str]:
    try:
        first = _first_line(table)
        if table.suffix.lower() == ".jsonl":
            row = json.loads(first)
            return list(row) if isinstance(row, dict) else []
        return next(csv.reader([first], delimiter=_separator(first)), [])
    except (OSError, ValueError, csv.Error):
        return []


def _refuse_other_texts(table: Path) -> None:
    """Refuse a table that is not UTF-8: its class names would be wrong."""
    with table.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                expected, action = "a table in UTF-8", "Save it as UTF-8."
                raise UserError(expected, f"{table}, line {number}, which is not", action) from None


def _first_line(table: Path) -> str:
    """Read the line of column names, also of UTF-16 files, which are then recognised and refused."""
    with table.open("rb") as stream:
        wide = stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    with table.open(encoding="utf-16" if wide else "utf-8-sig", errors="replace") as stream:
        return stream.readline(_HEADER)


def _separator(first_line: str) -> str:
    return max(",;\t", key=first_line.count)


def _sheets(root: Directory, data: DataSettings) -> list[Sheet]:
    """Return the tables of files and targets in a folder and in its split folders.

    If a table is named for the training set, tables without a split (a sample submission) are ignored.
    """
    sheets = []
    for folder in (root, *root.folders.values()):
        split = "" if folder is root else split_in(folder.path.name)
        if split is None:
            continue
        for path in (folder.path / name for name in folder.files if name.lower().endswith(SUFFIXES)):
            columns = columns_of(path, data) if path.is_file() else None
            if columns is not None:
                sheets.append(Sheet(path, columns, split or split_in(path.stem) or ""))
    of_splits = [sheet for sheet in sheets if sheet.split]
    return of_splits if any(sheet.split == "train" for sheet in of_splits) else sheets


def list_sheets(sheets: list[Sheet], scan: Scan) -> Listing:
    """List the samples of tables; images in no table are added to `scan.left`.

    Raises:
        UserError: For two tables of one split, rows without file, files with two targets, or unknown splits.
    """
    root = scan.root.path
    of_split: dict[tuple[str, Path], Sheet] = {}
    index = ImageIndex(root)
    samples: dict[Path, ListedSample] = {}
    for sheet in sheets:
        other = of_split.setdefault((sheet.split, sheet.path.parent), sheet)
        if other is not sheet:
            raise UserError(
                "one table of files and classes",
                f"{other.path.name} and {sheet.path.name} in {sheet.path.parent}",
                f'Name one of them as the source: source = "{other.path}".',
            )
        for sample in _samples(sheet, index):
            before = samples.setdefault(sample.image, sample)
            if before.target != sample.target or before.split != sample.split:
                raise UserError(
                    "one class or mask for each file",
                    f"{before.target} and {sample.target} for {sample.image} in {sheet.path}",
                    "Keep one row for each file.",
                )
    paths = [sheet.path for sheet in sheets]
    index.leave_rest(
        {file for sample in samples.values() for file in sample.files}, paths, NOT_LISTED, scan.left
    )
    names = ", ".join(path.relative_to(root).as_posix() for path in paths)
    return Listing(list(samples.values()), f"{names}: {sheets[0].columns}", sources=paths)


def _samples(sheet: Sheet, index: ImageIndex) -> list[ListedSample]:
    columns = sheet.columns
    samples: list[ListedSample] = []
    missing: list[str] = []
    names = list({name for name in columns if name})
    for row in _read_table(sheet.path, names):
        file, target = row[columns.file], row[columns.label or columns.mask or ""]
        image = index.find(file, sheet.path, sheet.split) if file else None
        mask = index.find(target, sheet.path, sheet.split) if columns.mask and target else None
        if image is None or target is None or (columns.mask and mask is None):
            value = f" ({target or 'without a value'})" if image else ""
            missing.append(f"{file or 'a row without a file'}{value}")
            continue
        split = sheet.split if columns.split is None else split_in(row[columns.split] or "")
        if split is None:
            raise UserError(
                "train, val or test in every row of the split column",
                f"{row[columns.split or '']!r} in {sheet.path}",
                "Correct the table, or name another column as `split_column` under [data].",
            )
        group = row[columns.group] if columns.group else None
        samples.append(ListedSample(image, MaskFile(mask) if mask else target, split, group))
    if missing:
        raise UserError(
            f"a file and a {'mask' if columns.mask else 'class'} for every row of {sheet.path}",
            f"none for {several(missing)}",
            f"Put the files under {index.root}, or remove their rows; `file_column` and `label_column` under "
            "[data] name other columns.",
        )
    return samples


def _list(scan: Scan) -> Listing:
    sheets = _sheets(scan.root, scan.data)
    if not sheets:
        raise UserError(
            "a table with a column of files and one of classes or masks",
            f"none in {scan.root.path}",
            "Name its columns: `file_column` and `label_column` under [data].",
        )
    return list_sheets(sheets, scan)


TABLE = Layout(
    name="table",
    words="images with a table of their files and classes, such as labels.csv",
    list=_list,
    recognise=lambda root, data: bool(_sheets(root, data)),
    whole=True,
)
