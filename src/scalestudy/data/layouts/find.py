"""From a folder to its samples: which layout it has, and what then lies in it."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.data import colours, layout
from scalestudy.data.colours import ColouredMask
from scalestudy.data.files_in import shown_entries
from scalestudy.data.kinds import Kind
from scalestudy.data.layouts import classes, tables
from scalestudy.data.layouts.base import Item, Layout, Listed, Scan
from scalestudy.data.layouts.look import Look
from scalestudy.data.layouts.sheet import Sheet, list_sheets
from scalestudy.data.layouts.table import ASKED, DOCUMENTS, NAMES, STRUCTURES
from scalestudy.data.left_out import BESIDE, LeftOut, Leftovers
from scalestudy.data.masks import Mask, MaskFile
from scalestudy.data.source import Ranges
from scalestudy.errors import UserError
from scalestudy.study.settings import DataSettings

_SPLITS = ("", *layout.SPLITS)


@dataclass(frozen=True)
class Listing:
    """All samples of a folder, in order of their splits.

    Attributes:
        kind: What they are.
        items: The samples.
        classes: Names of the classes by index; None where only the values in masks will tell.
        given: Rows (start, stop) of each split that the folder brings; empty without.
        groups: For each sample the group that it belongs to, or None.
        understood: The layout, in words.
        told_after: What more is known once all masks were read, in words.
        sources: Further files that decide what is read, such as tables.
        left_out: What lies in the folder and is not taken.
    """

    kind: Kind
    items: list[Item]
    classes: list[str] | None
    given: Ranges
    groups: list[str] | None
    understood: str
    told_after: Callable[[], str]
    sources: list[Path]
    left_out: tuple[LeftOut, ...]

    def masks(self) -> list[tuple[Path, Mask]]:
        """Every image with its mask."""
        return [(item.image, item.target) for item in self.items if not isinstance(item.target, str)]

    def labels(self) -> list[tuple[Path, int]]:
        """Every image with the index of its class."""
        index = {name: number for number, name in enumerate(self.classes or [])}
        return [(item.image, index[item.target]) for item in self.items if isinstance(item.target, str)]

    def files(self) -> list[Path]:
        """Every file that decides what is read, once."""
        found = [
            file
            for item in self.items
            for file in (item.image, *(() if isinstance(item.target, str) else item.target.files))
        ]
        return list(dict.fromkeys([*found, *self.sources]))


def list_table(table: Path, data: DataSettings) -> Listing:
    """The samples of a table that is named as the source; its files are seen from its folder.

    Raises:
        UserError: it has no columns of files and of classes or masks, or its samples contradict each other.
    """
    columns = tables.columns(table, data)
    if columns is None:
        raise UserError(
            "a table with a column of files (file, image_id, ...) and one of classes (label, ...) or masks",
            f"the file {table} without them",
            "Name the columns: `file_column` and `label_column` under [data].",
        )
    scan = Scan(Look(table.parent), data, Leftovers(table.parent))
    return _listing(list_sheets([Sheet(table, columns, "")], scan), scan)


def list_folder(root: Path, data: DataSettings) -> Listing:
    """Find out the layout of a folder by its names, and list its samples.

    Raises:
        UserError: It has none, or several; or its samples contradict each other.
    """
    scan = Scan(Look(root), data, Leftovers(root))
    chosen = _asked(data) or _recognised(scan)
    if not chosen.whole and "" not in scan.parts:
        layout.leave_others(root, [part.path for part in scan.parts.values()], scan.left)
    return _listing(chosen.list(scan), scan)


def _listing(listed: Listed, scan: Scan) -> Listing:
    listed = _coloured(listed, scan)
    items = sorted(listed.items, key=lambda item: _SPLITS.index(item.split))
    kind: Kind = "classes" if isinstance(items[0].target, str) else "masks"
    return Listing(
        kind=kind,
        items=items,
        classes=_classes(items, listed) if kind == "classes" else listed.classes,
        given=_given(items),
        groups=_groups(items, scan),
        understood=listed.understood,
        told_after=listed.told_after,
        sources=listed.sources,
        left_out=scan.left.found(),
    )


def _asked(data: DataSettings) -> Layout | None:
    if data.layout is not None:
        return NAMES[data.layout]
    return next((each for key, each in ASKED.items() if getattr(data, key) is not None), None)


def _recognised(scan: Scan) -> Layout:
    found = [each for each in DOCUMENTS if each.recognise(scan.root, scan.data)]
    structure = _structure(scan, strict=not found)
    if structure is not None and not (found and structure is classes.LAYOUT and not classes.plausible(scan)):
        found.append(structure)
    if len(found) > 1:
        names = " or ".join(f'"{each.name}"' for each in found)
        raise UserError(
            "a folder that can be understood in one way",
            f"{scan.root.path}, which may be {' or '.join(each.words for each in found)}",
            f"Say which under [data]: layout = {names}.",
        )
    if not found:
        raise _unknown(scan.root.path)
    return found[0]


def _structure(scan: Scan, *, strict: bool) -> Layout | None:
    """The layout that the names of files and folders tell, the same in every split; None without one.

    Raises:
        UserError: splits differ, or one has none; only if `strict`, since a table needs no such layout.
    """
    for each in STRUCTURES:
        if each.whole and each.recognise(scan.root, scan.data):
            return each
    try:
        of_part = {split: _of_part(part, scan.data) for split, part in scan.parts.items()}
    except UserError:
        if strict:
            raise
        return None
    found = [each for each in of_part.values() if each is not None]
    # A test set of images without masks is left out by the layout of objects, and told.
    missing = [] if found and found[0].name == "objects" else [each for each in of_part if not of_part[each]]
    if not found or (not strict and (missing or len(set(found)) > 1)):
        return None
    if missing:
        raise _unknown(scan.parts[missing[0]].path)
    if len(set(found)) > 1:
        raise UserError(
            "the same layout in every split",
            f"{' in some and '.join(each.words for each in dict.fromkeys(found))} in others "
            f"under {scan.root.path}",
            "Give every split the layout of train/.",
        )
    return found[0]


def _of_part(part: Look, data: DataSettings) -> Layout | None:
    return next((each for each in STRUCTURES if not each.whole and each.recognise(part, data)), None)


def _unknown(folder: Path) -> UserError:
    return UserError(
        f"a folder with {layout.LAYOUTS}",
        f"{folder}, which holds {shown_entries(folder)}",
        "Arrange the files in one of these ways, say where they lie (`images` and `masks` under [data]), or "
        "name another folder as the source.",
    )


def _coloured(listed: Listed, scan: Scan) -> Listed:
    """The samples with masks of colours, where [data] or a table beside the masks tells what these mean."""
    masks = [mask.path for _, mask in _files(listed.items)]
    said = scan.data.colours
    if len(masks) < len(listed.items) or (said is None and not colours.is_coloured(masks[0])):
        return listed
    near = [scan.root.path, *(each for each in masks[0].parents if scan.root.path in each.parents)]
    found = colours.said(said) if said is not None else colours.beside(near)
    if found is None:
        return listed  # its masks are refused when they are read, saying how to name their colours
    items = [
        replace(item, target=ColouredMask(item.target.path, found))
        if isinstance(item.target, MaskFile)
        else item
        for item in listed.items
    ]
    told = f"{listed.understood}; colours of masks told by {found.told_by} ({len(found.names)} classes)"
    sources = [*listed.sources, *([found.file] if found.file else [])]
    if found.file is not None:
        scan.left.take_back(BESIDE, found.file)
    return replace(listed, items=items, classes=found.names, understood=told, sources=sources)


def _files(items: list[Item]) -> list[tuple[Item, MaskFile]]:
    return [(item, item.target) for item in items if isinstance(item.target, MaskFile)]


def _given(items: list[Item]) -> Ranges:
    given: Ranges = {}
    for row, item in enumerate(items):
        if item.split:
            given[item.split] = (given.get(item.split, (row, 0))[0], row + 1)
    return given


def _classes(items: list[Item], listed: Listed) -> list[str]:
    """Classes as the layout tells them, or by name; all of them are in the training samples.

    Raises:
        UserError: one is not.
    """
    first = items[0].split
    names = listed.classes or sorted(
        {str(item.target) for item in items if item.split == first}, key=layout.in_order
    )
    for item in items:
        if item.target not in names:
            raise UserError(
                f"the classes of train/ ({', '.join(names)})",
                f"{item.image} of {item.target!r}",
                "Rename that class, or add samples of it to train/.",
            )
    return names


def _groups(items: list[Item], scan: Scan) -> list[str] | None:
    pattern = scan.data.group_pattern
    if pattern is None:
        if not any(item.group for item in items):
            return None
        return [item.group or item.image.as_posix() for item in items]
    groups = []
    for item in items:
        name = item.image.relative_to(scan.root.path).as_posix()
        match = re.search(pattern, item.image.name) or re.search(pattern, name)
        if match is None:
            raise UserError(
                f"a group in every name, as group_pattern = {pattern!r} finds it",
                f"{name}, in which it finds nothing",
                "Correct the pattern: what its first brackets (or all of it) match is the group.",
            )
        groups.append(match[1] if match.re.groups else match[0])
    return groups
