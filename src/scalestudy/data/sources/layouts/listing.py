"""The samples of a folder in one shape, whatever its layout: their order, classes, groups and colours."""

import re
from dataclasses import replace
from pathlib import Path

from scalestudy.data.images import colours
from scalestudy.data.images.colours import ColouredMask
from scalestudy.data.images.masks import MaskFile
from scalestudy.data.sources.layouts.base import ListedSample, Listing, Scan
from scalestudy.data.sources.layouts.names import SPLITS, in_order
from scalestudy.data.sources.left_out import BESIDE
from scalestudy.data.types import Ranges
from scalestudy.util.errors import UserError

_SPLITS = ("", *SPLITS)
_LOOKED_AT = 10
"""Masks that tell whether a set's are coloured: the first may be damaged, or grey by chance."""


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
    """Rows of each split; none at all, or training samples and no sample without a split.

    Raises:
        UserError: there are others.
    """
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
    """Classes as the layout tells them, or by name; all of them are in the training samples.

    Raises:
        UserError: one is not.
    """
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
