"""From a folder to its samples: which layout it has, what then lies in it, in which order and groups.

To add a layout, write its file and name it in the tables below.
"""

import re
from dataclasses import replace
from pathlib import Path

from scalestudy.data.images import colours
from scalestudy.data.images.colours import ColouredMask
from scalestudy.data.images.masks import MaskFile
from scalestudy.data.sources.base import COLUMNS, refuse_unused
from scalestudy.data.sources.files import shown_entries
from scalestudy.data.sources.layouts.base import Directory, Layout, ListedSample, Listing, Scan, leave_others
from scalestudy.data.sources.layouts.classes import CLASSES, LABELS, plausible
from scalestudy.data.sources.layouts.coco import COCO
from scalestudy.data.sources.layouts.names import SPLITS, in_order
from scalestudy.data.sources.layouts.pairs import PAIRS, PATTERNS, SUFFIXES
from scalestudy.data.sources.layouts.table import TABLE, Sheet, columns_of, list_sheets
from scalestudy.data.sources.left_out import BESIDE, Leftovers
from scalestudy.data.types import Ranges
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

STRUCTURES: tuple[Layout, ...] = (PAIRS, SUFFIXES, CLASSES)
"""Those that the names of files and folders tell: a folder has the first that is recognised."""
DOCUMENTS: tuple[Layout, ...] = (COCO, TABLE)
"""Those that a file beside the images tells."""
ASKED: dict[str, Layout] = {"images": PATTERNS, "masks": PATTERNS, "label_pattern": LABELS}
"""Those that a key of [data] asks for."""
_SPLITS = ("", *SPLITS)
_LOOKED_AT = 10
"""Masks that tell whether a set's are coloured: the first may be damaged, or grey by chance."""
NAMES: dict[str, Layout] = {layout.name: layout for layout in (*STRUCTURES, *DOCUMENTS)}


def list_table(table: Path, data: DataSettings) -> Listing:
    """The samples of a table that is named as the source; its files are seen from its folder.

    Raises:
        UserError: it has no columns of files and of classes or masks, or its samples contradict each other.
    """
    columns = columns_of(table, data)
    if columns is None:
        raise UserError(
            "a table with a column of files (file, image_id, ...) and one of classes (label, ...) or masks",
            f"the file {table} without them",
            "Name the columns: `file_column` and `label_column` under [data].",
        )
    scan = Scan(Directory(table.parent), data, Leftovers(table.parent))
    return finished(list_sheets([Sheet(table, columns, "")], scan), scan)


def list_folder(root: Path, data: DataSettings) -> Listing:
    """Find out the layout of a folder by its names, and list its samples.

    Raises:
        UserError: It has none, or several; or its samples contradict each other.
    """
    scan = Scan(Directory(root), data, Leftovers(root))
    layout = _asked(data) or _recognised(scan)
    if layout is not TABLE:
        refuse_unused(data, COLUMNS, f"{root}: {layout.words}")
    if not layout.whole and "" not in scan.parts:
        leave_others(root, [part.path for part in scan.parts.values()], scan.left)
    return finished(layout.list(scan), scan)


def _asked(data: DataSettings) -> Layout | None:
    if data.layout is not None:
        return NAMES[data.layout]
    return next((layout for key, layout in ASKED.items() if getattr(data, key) is not None), None)


def _recognised(scan: Scan) -> Layout:
    layouts = [layout for layout in DOCUMENTS if layout.recognise(scan.root, scan.data)]
    try:
        structure = _structure(scan)
    except UserError:
        if not layouts:  # beside a table, folders need no layout
            raise
        structure = None
    if structure is not None and not (layouts and structure is CLASSES and not plausible(scan)):
        layouts.append(structure)
    if len(layouts) > 1:
        names = " or ".join(f'"{layout.name}"' for layout in layouts)
        raise UserError(
            "a folder that can be understood in one way",
            f"{scan.root.path}, which may be {' or '.join(layout.words for layout in layouts)}",
            f"Say which under [data]: layout = {names}.",
        )
    return layouts[0]


def _structure(scan: Scan) -> Layout:
    """The layout that the names of files and folders tell, the same in every split."""
    if PAIRS.recognise(scan.root, scan.data):
        return PAIRS
    layouts: list[Layout] = []
    for part in scan.parts.values():
        layout = next((layout for layout in STRUCTURES if layout.recognise(part, scan.data)), None)
        if layout is None:
            raise UserError(
                "a folder with images/ and masks/ whose files pair by name, or one folder of images for each "
                "class (either of them, if you like, inside train/, val/ and test/), or another of the "
                "layouts in docs/data.md",
                f"{part.path}, which holds {shown_entries(part.path)}",
                "Arrange the files in one of these ways, say where they lie (`images` and `masks` under "
                "[data]), or name another folder as the source.",
            )
        layouts.append(layout)
    if len(set(layouts)) > 1:
        raise UserError(
            "the same layout in every split",
            f"{' in some and '.join(layout.words for layout in dict.fromkeys(layouts))} in others "
            f"under {scan.root.path}",
            "Give every split the layout of train/.",
        )
    return layouts[0]


def finished(listing: Listing, scan: Scan) -> Listing:
    """The samples of a layout in order of their splits, with their classes, groups and colours.

    Raises:
        UserError: a class is not in the training samples, there are no training samples beside others, a
            name has no group, or no record can hold it.
    """
    root = scan.root.path
    if not listing.samples:
        raise UserError("samples", f"none in {root} ({listing.understood})", "Add rows or files.")
    for sample in listing.samples:
        try:
            str(sample.image).encode()
        except UnicodeEncodeError:
            raise UserError(
                "file names in UTF-8", ascii(str(sample.image)), "Rename the file, for example with convmv."
            ) from None
    listing = _coloured(listing, scan)
    samples = sorted(listing.samples, key=lambda sample: _SPLITS.index(sample.split))
    given = _given(samples, root)
    if scan.data.group_pattern is not None:
        samples = [_grouped(sample, scan.data.group_pattern, root) for sample in samples]
    classes = _classes(samples, listing.classes) if listing.kind == "classes" else listing.classes
    return replace(listing, samples=samples, classes=classes, given=given, left_out=scan.left.found())


def _coloured(listing: Listing, scan: Scan) -> Listing:
    """The samples with masks of colours, where [data] or a table beside the masks tells what these mean."""
    masks = [sample.target.path for sample in listing.samples if isinstance(sample.target, MaskFile)]
    given = scan.data.colours
    if len(masks) < len(listing.samples):
        return listing
    near = [scan.root.path, *(parent for parent in masks[0].parents if scan.root.path in parent.parents)]
    table = colours.of_settings(given) if given is not None else colours.beside(near)
    if table is None or (given is None and not any(map(colours.is_coloured, masks[:_LOOKED_AT]))):
        return listing  # its masks are refused when they are read, saying how to name their colours
    if table.file is not None:
        scan.left.take_back(BESIDE, table.file)
    samples = [
        replace(sample, target=ColouredMask(mask, table))
        for sample, mask in zip(listing.samples, masks, strict=True)
    ]
    understood = f"{listing.understood}; colours of masks told by {table.origin} ({len(table.names)} classes)"
    sources = [*listing.sources, *([table.file] if table.file else [])]
    return replace(listing, samples=samples, classes=table.names, understood=understood, sources=sources)


def _given(samples: list[ListedSample], root: Path) -> Ranges:
    """Rows of each split; none at all, or training samples and no sample without a split."""
    splits = [sample.split for sample in samples]
    names = dict.fromkeys(splits)
    if any(names) and ("train" not in names or "" in names):
        raise UserError(
            "training samples beside those of the other splits, or samples without splits",
            f"{' and '.join(split or 'some of no split' for split in names)} in {root}",
            "Say train, val or test of all, train of some; or name files and folders without a split.",
        )
    return {
        split: (splits.index(split), splits.index(split) + splits.count(split)) for split in names if split
    }


def _classes(samples: list[ListedSample], classes: list[str] | None) -> list[str]:
    """Classes as the layout tells them, or by name; all of them are in the training samples."""
    first = samples[0].split
    names = classes or sorted(
        {str(sample.target) for sample in samples if sample.split == first}, key=in_order
    )
    known = set(names)
    for sample in samples:
        if sample.target not in known:
            raise UserError(
                f"the classes of train/ ({', '.join(names)})",
                f"{sample.image} of {sample.target!r}",
                "Rename that class, or add samples of it to train/.",
            )
    return names


def _grouped(sample: ListedSample, pattern: str, root: Path) -> ListedSample:
    name = sample.image.relative_to(root).as_posix()
    match = re.search(pattern, sample.image.name) or re.search(pattern, name)
    group = match and (match[1] if match.re.groups else match[0])
    if group is None:
        raise UserError(
            f"a group in every name, as group_pattern = {pattern!r} finds it",
            f"{name}, in which it finds nothing",
            "Correct the pattern: what its first brackets (or all of it) match is the group.",
        )
    return replace(sample, group=group)
