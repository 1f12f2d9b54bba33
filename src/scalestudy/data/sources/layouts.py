"""Find the layout of a folder, and list its samples with their order, groups and classes.

To add a layout, write a module for it and add it to `_OURS`.
"""

import re
from dataclasses import replace
from pathlib import Path

from scalestudy.config.settings import DataSettings
from scalestudy.data.images.masks import (
    MASKS_TRIED,
    ColouredMask,
    MaskFile,
    colours_beside,
    colours_of,
    is_coloured,
)
from scalestudy.data.samples import Ranges
from scalestudy.data.sources.files import SPLITS, Directory, Leftovers, in_order, role
from scalestudy.data.sources.labels import CLASSES, LABELS, TABLE, Sheet, columns_of, list_sheets, plausible
from scalestudy.data.sources.listing import Layout, ListedSample, Listing, Scan
from scalestudy.data.sources.pairs import PAIRS, PATTERNS, SUFFIXES, patterns
from scalestudy.data.sources.source import COLUMNS, refuse_alike, refuse_unused
from scalestudy.util.errors import UserError

LAYOUTS = (PATTERNS, LABELS, TABLE, PAIRS, SUFFIXES, CLASSES)
"""All layouts, selected by keys, by a file beside the images, or by names of folders."""
_SPLITS = ("", *SPLITS)
NAMES_OF_CLASSES = ("class_names.txt", "classes.txt")


def list_table(table: Path, data: DataSettings) -> Listing:
    """List the samples of a table that is the source; its files are relative to its folder.

    Raises:
        UserError: If it lacks a column of files or of targets, or its samples contradict each other.
    """
    columns = columns_of(table, data)
    if columns is None:
        raise UserError(
            "a table with a column of files (file, image_id, ...) and one of classes (label, ...) or masks",
            f"the file {table} without them",
            "Name the columns: `file_column` and `label_column` under [data].",
        )
    scan = Scan(Directory(table.parent), data, Leftovers(table.parent))
    return finish(list_sheets([Sheet(table, columns, "")], scan), scan)


def list_folder(root: Path, data: DataSettings) -> Listing:
    """Find the layout of a folder by its names, and list its samples.

    Raises:
        UserError: If no layout or several layouts fit, or if samples contradict each other.
    """
    scan = Scan(Directory(root), data, Leftovers(root))
    layout = _layout(scan)
    if layout is not TABLE:
        refuse_unused(data, COLUMNS, f"{root}: {layout.words}")
    if not layout.whole and "" not in scan.parts:
        scan.left.add_others(root, [part.path for part in scan.parts.values()])
    return finish(layout.list(scan), scan)


def _layout(scan: Scan) -> Layout:
    """Return the layout that [data] selects, else the only one that fits."""
    data = scan.data
    for layout in LAYOUTS:
        asked = any(getattr(data, key) is not None for key in layout.keys)
        if layout.name == data.layout or (data.layout is None and asked):
            return layout
    fitting = [TABLE] if TABLE.fits(scan) else []
    try:
        structure = next((layout for layout in (PAIRS, SUFFIXES, CLASSES) if layout.fits(scan)), None)
    except UserError:
        if not fitting:  # beside a table, folders need no layout
            raise
        structure = None
    if structure and not (fitting and structure is CLASSES and not plausible(scan)):
        fitting.append(structure)
    if not fitting:
        raise UserError(
            "a folder with images/ and masks/ whose files pair by name, or a folder of images for each "
            "class (either, if you like, the same layout inside train/, val/ and test/), or another of the "
            "layouts in docs/reference/data.md",
            " and ".join(str(part) for part in scan.parts.values()),
            f"Say where images and masks are: {_lines(scan)} under [data]; or arrange the files in one of "
            "these ways, or name another folder as the source.",
        )
    if len(fitting) > 1:
        names = " or ".join(f'"{layout.name}"' for layout in fitting)
        raise UserError(
            "a folder with one possible layout",
            f"{scan.root.path}, which may be {' or '.join(layout.words for layout in fitting)}",
            f"Say which under [data]: layout = {names}.",
        )
    return fitting[0]


def _lines(scan: Scan) -> str:
    """Return the lines of [data] for the folders that exist, as an example."""
    folders = [folder for folder in scan.root.folders.values() if folder.images]
    named = sorted(folders, key=lambda folder: role(folder.path.name)[0] == "mask")
    images = sorted(named[:2], key=lambda folder: role(folder.path.name)[0] != "image")
    return patterns(*images) if len(images) == 2 else '`images = "FOLDER/*"` and `masks = "FOLDER/*"`'


def finish(listing: Listing, scan: Scan) -> Listing:
    """Sort the samples of a listing by split, and add their classes, groups and colours.

    Raises:
        UserError: If a class is not in the training samples, if splits lack training samples, if a name has
            no group, or if a file name is not valid UTF-8.
    """
    root = scan.root.path
    if not listing.samples:
        raise UserError("samples", f"none in {root} ({listing.understood})", "Add rows or files.")
    for sample in listing.samples:
        name = str(sample.image)
        if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
            raise UserError("file names in UTF-8", ascii(name), "Rename the file, for example with convmv.")
    listing = _find_colours(listing, scan)
    samples = sorted(listing.samples, key=lambda sample: _SPLITS.index(sample.split))
    given = _given(samples, root)
    if scan.data.group_pattern is not None:
        samples = [_group(sample, scan.data.group_pattern, root) for sample in samples]
    classes = _classes(samples, listing.classes) if listing.kind == "classes" else listing.classes
    refuse_alike(classes or listing.index_names, str(root))
    left_out = scan.left.groups(listing.sources)
    return replace(listing, samples=samples, classes=classes, given=given, left_out=left_out)


def _find_colours(listing: Listing, scan: Scan) -> Listing:
    """Convert masks of colours if [data] or a table beside the masks defines the colours."""
    masks = [sample.target.path for sample in listing.samples if isinstance(sample.target, MaskFile)]
    given = scan.data.colours
    if len(masks) < len(listing.samples):
        return listing
    near = [scan.root.path, *(parent for parent in masks[0].parents if scan.root.path in parent.parents)]
    table = colours_of(given) if given is not None else colours_beside(near)
    if table is None or (given is None and not any(map(is_coloured, masks[:MASKS_TRIED]))):
        # Colour masks without a table are refused when they are read.
        return _named(listing, near) if listing.classes is None else listing
    samples = [
        replace(sample, target=ColouredMask(mask, table))
        for sample, mask in zip(listing.samples, masks, strict=True)
    ]
    understood = f"{listing.understood}; colours of masks told by {table.origin} ({len(table.names)} classes)"
    sources = [*listing.sources, *([table.file] if table.file else [])]
    return replace(listing, samples=samples, classes=table.names, understood=understood, sources=sources)


def _named(listing: Listing, folders: list[Path]) -> Listing:
    """Add class names from a file with one name per line in one of these folders."""
    for file in (folder / name for folder in folders for name in NAMES_OF_CLASSES):
        if file.is_file():
            lines = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
            names = tuple(line.strip() for line in lines if line.strip())
            return replace(listing, index_names=names, sources=[*listing.sources, file])
    return listing


def _given(samples: list[ListedSample], root: Path) -> Ranges:
    """Return the rows of each split; refuse splits without training samples or samples without split."""
    splits = [sample.split for sample in samples]
    names = dict.fromkeys(splits)
    if any(names) and ("train" not in names or "" in names):
        raise UserError(
            "training samples besides the other splits, or samples without splits",
            f"{' and '.join(split or 'some of no split' for split in names)} in {root}",
            "Assign train, val or test to all samples, and train to some of them, or assign no splits.",
        )
    return {
        split: (splits.index(split), splits.index(split) + splits.count(split)) for split in names if split
    }


def _classes(samples: list[ListedSample], classes: list[str] | None) -> list[str]:
    """Return the layout's classes, or the sorted classes of the first split; refuse any others."""
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


def _group(sample: ListedSample, pattern: str, root: Path) -> ListedSample:
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
