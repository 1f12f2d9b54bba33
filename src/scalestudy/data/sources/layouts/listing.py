"""The samples of a folder in one shape, whatever its layout: their order, classes, groups and colours."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scalestudy.data.images import colours
from scalestudy.data.images.colours import ColouredMask
from scalestudy.data.images.masks import Mask, MaskFile
from scalestudy.data.sources.layouts.base import Item, Listed, Scan
from scalestudy.data.sources.layouts.names import SPLITS, in_order
from scalestudy.data.sources.left_out import BESIDE, LeftOut
from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import Ranges
from scalestudy.util.errors import UserError

_SPLITS = ("", *SPLITS)
_LOOKED_AT = 10
"""Masks that tell whether a set's are coloured: the first may be damaged, or grey by chance."""


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
        known_after: What more is known once all masks were read, in words.
        sources: Further files that decide what is read, such as tables.
        left_out: What lies in the folder and is not taken.
    """

    kind: Kind
    items: list[Item]
    classes: list[str] | None
    given: Ranges
    groups: list[str] | None
    understood: str
    known_after: Callable[[], str]
    sources: list[Path]
    left_out: tuple[LeftOut, ...]

    def only(self, rows: Sequence[int], given: Ranges) -> "Listing":
        """The listing of these samples alone, with where they stand by split."""
        groups = self.groups and [self.groups[row] for row in rows]
        return replace(self, items=[self.items[row] for row in rows], groups=groups, given=given)

    def masks(self) -> list[tuple[Path, Mask]]:
        """Every image with its mask."""
        return [(item.image, item.target) for item in self.items if not isinstance(item.target, str)]

    def labels(self) -> list[tuple[Path, int]]:
        """Every image with the index of its class."""
        index = {name: number for number, name in enumerate(self.classes or [])}
        return [(item.image, index[item.target]) for item in self.items if isinstance(item.target, str)]

    def files(self) -> list[Path]:
        """Every file that decides what is read, once."""
        files = [
            file
            for item in self.items
            for file in (item.image, *(() if isinstance(item.target, str) else item.target.files))
        ]
        return list(dict.fromkeys([*files, *self.sources]))


def listing_of(listed: Listed, scan: Scan) -> Listing:
    """The samples of a layout in order of their splits, their classes and groups told.

    Raises:
        UserError: a class is not in the training samples, there are no training samples beside others, or a
            name has no group.
    """
    _refuse_unusable(listed, scan.root.path)
    listed = _coloured(listed, scan)
    items = sorted(listed.items, key=lambda item: _SPLITS.index(item.split))
    given = _given(items, scan.root.path)
    kind: Kind = "classes" if isinstance(items[0].target, str) else "masks"
    return Listing(
        kind=kind,
        items=items,
        classes=_classes(items, listed) if kind == "classes" else listed.classes,
        given=given,
        groups=_groups(items, scan),
        understood=listed.understood,
        known_after=listed.known_after,
        sources=listed.sources,
        left_out=scan.left.found(),
    )


def _refuse_unusable(listed: Listed, root: Path) -> None:
    """Refuse a listing without samples, and names that no record can hold."""
    if not listed.items:
        raise UserError("samples", f"none in {root} ({listed.understood})", "Add rows or files.")
    for item in listed.items:
        try:
            str(item.image).encode()
        except UnicodeEncodeError:
            raise UserError(
                "file names in UTF-8", ascii(str(item.image)), "Rename the file, for example with convmv."
            ) from None


def _coloured(listed: Listed, scan: Scan) -> Listed:
    """The samples with masks of colours, where [data] or a table beside the masks tells what these mean."""
    masks = [mask.path for _, mask in _files(listed.items)]
    given = scan.data.colours
    if len(masks) < len(listed.items):
        return listed
    near = [scan.root.path, *(parent for parent in masks[0].parents if scan.root.path in parent.parents)]
    table = colours.of_settings(given) if given is not None else colours.beside(near)
    if table is None or (given is None and not any(map(colours.is_coloured, masks[:_LOOKED_AT]))):
        return listed  # its masks are refused when they are read, saying how to name their colours
    items = [
        replace(item, target=ColouredMask(item.target.path, table))
        if isinstance(item.target, MaskFile)
        else item
        for item in listed.items
    ]
    understood = f"{listed.understood}; colours of masks told by {table.origin} ({len(table.names)} classes)"
    sources = [*listed.sources, *([table.file] if table.file else [])]
    if table.file is not None:
        scan.left.take_back(BESIDE, table.file)
    return replace(listed, items=items, classes=table.names, understood=understood, sources=sources)


def _files(items: list[Item]) -> list[tuple[Item, MaskFile]]:
    return [(item, item.target) for item in items if isinstance(item.target, MaskFile)]


def _given(items: list[Item], root: Path) -> Ranges:
    """Rows of each split; none at all, or training samples and no sample without a split.

    Raises:
        UserError: there are others.
    """
    splits = dict.fromkeys(item.split for item in items)
    if any(splits) and ("train" not in splits or "" in splits):
        received = " and ".join(split or "some of no split" for split in splits)
        raise UserError(
            "training samples beside those of the other splits, or samples without splits",
            f"{received} in {root}",
            "Say train, val or test of all, train of some; or name files and folders without a split.",
        )
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
        {str(item.target) for item in items if item.split == first}, key=in_order
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
        group = match and (match[1] if match.re.groups else match[0])
        if group is None:
            raise UserError(
                f"a group in every name, as group_pattern = {pattern!r} finds it",
                f"{name}, in which it finds nothing",
                "Correct the pattern: what its first brackets (or all of it) match is the group.",
            )
        groups.append(group)
    return groups
