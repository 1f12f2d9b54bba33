"""Images with masks, found by the names of their folders or files, or by patterns.

The names of folders give role and split, in any order: `images/` and `masks/`, `train/images/` and
`train/masks/`, `images/train/` and `masks/train/`, `train_images/` and `train_masks/`, `train/` and
`train_labels/`. Other folders around or inside of these, such as one for each patient, must be the same for
an image and its mask. Images and masks may also be in one folder (`a.png` with `a_mask.png`). An image may
have a mask for each object (as in the Data Science Bowl 2018, J. C. Caicedo et al., Nature Methods 16, 2019).
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scalestudy.config.settings import DataSettings
from scalestudy.data.images.masks import ObjectMasks
from scalestudy.data.sources.files import (
    READ_SUFFIXES,
    ListedSample,
    Tree,
    hint_of,
    is_mask_folder,
    is_system_name,
    role,
    split_in,
    strip_suffix,
)
from scalestudy.data.sources.pairing import (
    Located,
    common_start,
    match_masks,
    matched,
    tokens_of,
    without_words,
)
from scalestudy.util.errors import UserError

_LEAST = 0.25
"""Minimum share of masks among the files of a folder; it is 1/2 for complete pairs."""
_MOST = 0.5
"""Share of the images for which a folder of masks must have partners, to be one that can be meant."""


class Pairs(NamedTuple):
    """Images and masks, not yet paired, and where they are, in words."""

    root: Path
    images: list[Located]
    masks: list[Located]
    where: str

    def list(self) -> tuple[list[ListedSample], str]:
        """Return the samples, and how they were understood. A test set without masks is left out.

        Raises:
            UserError: If an image has no mask, a mask has no image, a name occurs twice, or several folders
                can be the images or the masks.
        """
        masked = {mask.split for mask in self.masks}
        images = [
            image for image in self.images if image.split != "test" or "test" in masked
        ]
        objects = _objects(images, self.masks)
        if objects:
            count = sum(len(sample.files) - 1 for sample in objects)
            return objects, (
                f"a folder for each image with a mask of each object: {count} objects in {len(objects)} "
                "images, joined to background and foreground"
            )
        _refuse_choices(self.root, images, self.masks)
        pairs, how = match_masks(images, self.masks)
        samples = [
            ListedSample(image.file, mask.file, image.split) for image, mask in pairs
        ]
        return samples, f"{self.where}, paired {how}"


def find_pairs(tree: Tree) -> Pairs | None:
    """Return images and masks that the names of folders or files tell apart; None if they do not."""
    paired_names = _names_with_counterparts(tree)
    letters = {
        name.lower()
        for parts in tree.folders.values()
        for name in parts
        if len(name) == 1
    }
    alphabet = bool(
        letters - {"x", "y"}
    )  # classes of letters, two of which are x and y
    of_role: dict[str | None, list[Located]] = {"image": [], "mask": [], None: []}
    mask_folders = set()
    for file in tree.images:
        what, split, branch, rest = None, "", "", []
        for name in tree.folders[file]:
            inner_what, inner_split = role(name)
            inner_what = inner_what or paired_names.get(name)
            if alphabet and len(name) == 1:
                inner_what = None
            what, split = inner_what or what, inner_split or split
            if inner_what:
                branch = name
            if inner_what == "mask":
                mask_folders.add(name)
            if not inner_what and not inner_split:
                rest.append(name)
        of_role[what].append(Located(file, split, "/".join(rest), branch))
    images, masks, others = of_role["image"], of_role["mask"], of_role[None]
    if masks and not images and all(map(is_mask_folder, mask_folders)):
        images, masks = _with_unnamed_images(tree, masks, others)
    if images and masks:
        return _pairs_of(tree, images, masks)
    return None if masks or images else _side_by_side(tree, others)


def _names_with_counterparts(tree: Tree) -> dict[str, str]:
    """Return the roles of folder names of which another is equal but for its role.

    `images_collective` counts as images only beside `masks_collective`.
    """
    folders = {name for parts in tree.folders.values() for name in parts}
    of_rest: dict[frozenset[str], dict[str, list[str]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for name in folders:
        what, rest = hint_of(name)
        if what and role(name)[0] is None:
            of_rest[rest][what].append(name)
    return {
        name: what
        for names_of in of_rest.values()
        if len(names_of) == 2
        for what, names in names_of.items()
        for name in names
    }


def _with_unnamed_images(
    tree: Tree, masks: list[Located], others: list[Located]
) -> tuple[list[Located], list[Located]]:
    """Find the images in folders of another name with the files' names: train/ beside train_labels/."""
    flat_masks = [mask._replace(folder="") for mask in masks]
    names = {without_words(mask.file.stem) for mask in masks}
    alike = [other for other in others if without_words(other.file.stem) in names]
    if len(alike) < _MOST * len(names):  # single files of one name by chance
        return [], masks
    folders = {other.file.parent for other in alike}
    folders = {
        folder
        for folder in folders
        if folder != tree.root and "mask" not in folder.name.lower()
    }
    images = [
        other._replace(folder="", branch=other.file.parent.name)
        for other in others
        if other.file.parent in folders
    ]
    return images, flat_masks


def _pairs_of(tree: Tree, images: list[Located], masks: list[Located]) -> Pairs:
    splits = [{located.split for located in side} for side in (images, masks)]
    if (
        splits[0] != splits[1]
        and {""} in splits
        and all(len(of_side) == 1 for of_side in splits)
    ):
        # One name alone mentions a split: train_images/ beside annotations/.
        images, masks = (
            [located._replace(split="") for located in side] for side in (images, masks)
        )
    images, masks = (
        _without_own_folders(images, masks),
        _without_own_folders(masks, images),
    )
    shown = [tree.relative(side[-1].file).parent.as_posix() for side in (images, masks)]
    likewise = (
        " (likewise other splits)" if len({image.split for image in images}) > 1 else ""
    )
    return Pairs(tree.root, images, masks, f"{shown[0]}/ and {shown[1]}/{likewise}")


def _without_own_folders(side: list[Located], other: list[Located]) -> list[Located]:
    """Drop the folders that all files of one side share and none of the other has: annotations/trimaps/."""
    folders = [set(located.folder.split("/")) for located in side]
    own = set.intersection(*folders) - {
        name for located in other for name in located.folder.split("/")
    }
    if not own - {""}:
        return side
    return [
        located._replace(
            folder="/".join(
                name for name in located.folder.split("/") if name not in own
            )
        )
        for located in side
    ]


def _objects(images: list[Located], masks: list[Located]) -> list[ListedSample]:
    """Return samples with a mask for each object; empty unless each folder holds one image, some more masks.

    An image whose folder has no mask makes the set one of ordinary pairs, which name it.
    """
    masks_of: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for mask in masks:
        masks_of[mask.split, mask.folder].append(mask.file)
    places = [(image.split, image.folder) for image in images]
    several_masks = any(len(files) > 1 for files in masks_of.values())
    if (
        not several_masks
        or len(set(places)) < len(places)
        or set(places) != masks_of.keys()
    ):
        return []
    return [
        ListedSample(image.file, ObjectMasks(tuple(masks_of[place])), image.split)
        for image, place in zip(images, places, strict=True)
    ]


def _refuse_choices(root: Path, images: list[Located], masks: list[Located]) -> None:
    """Refuse several folders, or several ends of names, that can be the images or the masks.

    Raises:
        UserError: Names them, with the keys that choose one.
    """
    for what, side, other in (("masks", masks, images), ("images", images, masks)):
        choices = _folders_to_choose(side, other) or _ends_to_choose(side, other)
        if not choices:
            continue
        others = pattern_of(root, [located.file for located in other])
        lines = [pattern_of(root, files, end) for end, files in choices]
        readings = [
            f'images = "{others}" and masks = "{line}"'
            if what == "masks"
            else f'images = "{line}" and masks = "{others}"'
            for line in lines
        ]
        raise UserError(
            f"one folder or kind of file for the {what}",
            f"{len(lines)} that can be the {what} in {root}: {' and '.join(lines)}",
            f"Choose one under [data]: {'; or '.join(readings)}.",
        )


Choices = list[tuple[str, list[Path]]]
"""Ends of names ("" for any) with their files."""


def _folders_to_choose(side: list[Located], other: list[Located]) -> Choices:
    """Return folders of one side that each have partners for most files of the other side."""
    of_branch: dict[str, list[Located]] = defaultdict(list)
    for located in side:
        of_branch[located.branch].append(located)
    if len(of_branch) < 2:
        return []
    partners = {}
    for branch, of_one in of_branch.items():
        splits = {located.split for located in of_one}
        near = [located for located in other if located.split in splits]
        found = {partner.file for partner, _ in matched(near, of_one)}
        if found and len(found) >= _MOST * min(len(near), len(of_one)):
            partners[branch] = found
    meant = [
        branch
        for branch, found in partners.items()
        if any(found & others for name, others in partners.items() if name != branch)
    ]
    return [
        ("", [located.file for located in of_branch[branch]])
        for branch in sorted(meant)
    ]


def _ends_to_choose(side: list[Located], other: list[Located]) -> Choices:
    """Return ends of names that follow the name of a partner, if several follow most: `_color`."""
    if len(side) < (1 + _MOST) * len(other):
        return []
    same_end = len(
        common_start([tokens_of(located.file.stem)[::-1] for located in other])
    )
    names = {
        tuple(tokens[: len(tokens) - cut])
        for tokens in (tokens_of(located.file.stem) for located in other)
        for cut in (0, same_end)
    }
    of_end: dict[str, list[Path]] = defaultdict(list)
    for located in side:
        tokens = tokens_of(located.file.stem)
        starts = (
            stop
            for stop in range(len(tokens) - 1, 0, -1)
            if tuple(tokens[:stop]) in names
        )
        stop = next(starts, None)
        if stop is not None:
            end = located.file.stem[len("".join(tokens[:stop])) :]
            of_end[end].append(located.file)
    choices = [
        (end, files)
        for end, files in sorted(of_end.items())
        if len(files) >= _MOST * len(other)
    ]
    return choices if len(choices) > 1 else []


def pattern_of(root: Path, files: Sequence[Path], end: str = "") -> str:
    """Return a pattern, relative to `root`, that matches files of one depth: `*/images/*`."""
    folders = [file.relative_to(root).parts[:-1] for file in files]
    if len(set(map(len, folders))) > 1:
        depth = min(map(len, folders))
        levels = list(zip(*(parts[:depth] for parts in folders), strict=True))
        names = [level[0] if len(set(level)) == 1 else "*" for level in levels]
        return "/".join([*names, "**", f"*{end}.*" if end else "*"])
    names = [
        level[0] if len(set(level)) == 1 else "*"
        for level in zip(*folders, strict=True)
    ]
    return "/".join([*names, f"*{end}.*" if end else "*"])


def _side_by_side(tree: Tree, files: Sequence[Located]) -> Pairs | None:
    roles = [strip_suffix(located.file.stem)[1] for located in files]
    masks = [
        located for located, what in zip(files, roles, strict=True) if what == "mask"
    ]
    images = [
        located for located, what in zip(files, roles, strict=True) if what != "mask"
    ]
    if len(masks) < _LEAST * len(files) or not matched(images, masks):
        return None
    return Pairs(tree.root, images, masks, "images and masks in one folder")


def list_patterns(tree: Tree, data: DataSettings) -> tuple[list[ListedSample], str]:
    """Pair the images and masks that patterns of [data] match.

    Folders that differ within a side tell files of one name apart, and give the splits.

    Raises:
        UserError: If a pattern is missing or matches nothing, if both match a file, or as in `match_masks`.
    """
    images, masks = (
        _matching(tree.root, key, getattr(data, key)) for key in ("images", "masks")
    )
    if both := sorted({image.file for image in images} & {mask.file for mask in masks}):
        raise UserError(
            "patterns that tell images and masks apart",
            f"{both[0]}, which matches both",
            "Make the patterns more specific.",
        )
    if {image.split for image in images} != {mask.split for mask in masks}:
        images, masks = (
            [located._replace(split="") for located in side] for side in (images, masks)
        )
    pairs, how = match_masks(images, masks)
    samples = [
        ListedSample(image.file, mask.file, image.split) for image, mask in pairs
    ]
    return samples, f"images {data.images} and masks {data.masks}, paired {how}"


def _matching(root: Path, key: str, pattern: str | None) -> list[Located]:
    if pattern is None:
        raise UserError(
            "`images` and `masks` under [data]",
            f"no `{key}`",
            f'Add {key} = "PATTERN".',
        )
    try:
        files = sorted(
            file
            for file in root.glob(pattern)
            if file.name.lower().endswith(READ_SUFFIXES)
            and not any(map(is_system_name, file.relative_to(root).parts))
            and file.is_file()
        )
        problem = "" if files else f"none in {root}"
    except (ValueError, NotImplementedError) as error:
        problem = str(error)
    if problem:
        raise UserError(
            f"images that {key} = {pattern!r} matches",
            problem,
            "Correct the pattern: it is relative to the source; * stands for any name, ** for any folders.",
        )
    return _located(root, files)


def _located(root: Path, files: list[Path]) -> list[Located]:
    """Return files with the folders in which they differ; a folder with a role is none of these."""
    shared = set.intersection(
        *(set(file.relative_to(root).parts[:-1]) for file in files)
    )
    located = []
    for file in files:
        names = [
            name for name in file.relative_to(root).parts[:-1] if name not in shared
        ]
        splits = [split for name in names if (split := split_in(name))]
        rest = [name for name in names if role(name) == (None, None)]
        located.append(Located(file, splits[0] if splits else "", "/".join(rest)))
    if {each.split for each in located} & {"", "train"} != {"train"}:
        located = [each._replace(split="") for each in located]
    return located
