"""Images with a table of their files and classes or masks: `labels.csv`, `train.csv`, `metadata.jsonl`."""

from pathlib import Path
from typing import NamedTuple

from scalestudy.data.files_in import several
from scalestudy.data.layouts import tables
from scalestudy.data.layouts.base import Item, Layout, Listed, Scan
from scalestudy.data.layouts.index import Index
from scalestudy.data.layouts.look import Look
from scalestudy.data.layouts.names import split_in
from scalestudy.data.layouts.tables import Columns
from scalestudy.data.masks import MaskFile
from scalestudy.errors import UserError
from scalestudy.study.settings import DataSettings

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
    found = []
    for folder in (root, *root.folders.values()):
        split = "" if folder is root else split_in(folder.path.name)
        if folder is not root and not split:
            continue
        for name in folder.files:
            path = folder.path / name
            if path.suffix.lower() in tables.SUFFIXES and path.is_file():
                columns = tables.columns(path, data)
                if columns is not None:
                    found.append(Sheet(path, columns, split or split_in(path.stem) or ""))
    named = [sheet for sheet in found if sheet.split]
    return named if any(sheet.split == "train" for sheet in named) else found


def list_sheets(found: list[Sheet], scan: Scan) -> Listed:
    """The samples of tables; `scan.left` is told which images are in none of them.

    Raises:
        UserError: two tables for one split, rows without a file, files with two classes, or unknown splits.
    """
    root = scan.root.path
    _refuse_two(found)
    index = Index(root)
    items: dict[Path, Item] = {}
    for sheet in found:
        for item in _items(sheet, index):
            before = items.setdefault(item.image, item)
            if before.target != item.target or before.split != item.split:
                raise UserError(
                    "one class or mask for each file",
                    f"{before.target} and {item.target} for {item.image} in {sheet.path}",
                    "Keep one row for each file: samples have one class.",
                )
    taken = set(items) | {file for item in items.values() for file in _mask_files(item)}
    paths = [sheet.path for sheet in found]
    index.leave_rest(taken, paths, NOT_LISTED, scan.left)
    names = ", ".join(path.relative_to(root).as_posix() for path in paths)
    return Listed(list(items.values()), f"{names}: {found[0].columns}", sources=paths)


def _items(sheet: Sheet, index: Index) -> list[Item]:
    columns = sheet.columns
    wanted = [columns.file, columns.label or columns.mask or "", columns.split, columns.group]
    frame = tables.rows(sheet.path)
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


def _refuse_two(found: list[Sheet]) -> None:
    seen: dict[tuple[str, Path], Sheet] = {}
    for sheet in found:
        other = seen.setdefault((sheet.split, sheet.path.parent), sheet)
        if other is not sheet:
            raise UserError(
                "one table of files and classes",
                f"{other.path.name} and {sheet.path.name} in {sheet.path.parent}",
                f'Name one of them as the source: source = "{other.path}".',
            )


def _list(scan: Scan) -> Listed:
    return list_sheets(sheets(scan.root, scan.data), scan)


LAYOUT = Layout(
    name="table",
    words="images with a table of their files and classes, such as labels.csv",
    recognise=lambda root, data: bool(sheets(root, data)),
    list=_list,
    whole=True,
)
