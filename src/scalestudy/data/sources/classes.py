"""Images with classes in the names of their folders, or where `label_pattern` finds them."""

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from scalestudy.data.images.glance import glance, spread
from scalestudy.data.sources.files import (
    ListedSample,
    Tree,
    composed,
    hint_of,
    in_order,
    split_in,
)
from scalestudy.util.errors import UserError
from scalestudy.util.text import join_first

_COMPARED = 8
"""Maximum number of classes of which a few images are read, to find masks among them."""


def list_classes(tree: Tree) -> tuple[list[ListedSample], str]:
    """List the images in a folder for each class, perhaps inside or around of folders for the splits.

    Folders around all of these are passed over. Empty if folders are named like splits or like images and
    masks alone.

    Raises:
        UserError: If each of several folders holds folders of the same names, of which either can be classes.
    """
    parts_of = tree.folders
    skipped = _wrappers([parts for parts in parts_of.values() if parts])
    inner_of = {file: parts[skipped:] for file, parts in parts_of.items()}
    divided = any(
        _split(parts) and _without_splits(parts) for parts in inner_of.values()
    )
    samples = []
    folders_of: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for file, parts in inner_of.items():
        split, rest = "", parts
        if divided:
            split, rest = _split(parts), _without_splits(parts)
        # Where folders divide the set, files outside of all splits are no samples.
        if rest and (split or not divided):
            label = composed(rest[0])
            samples.append(ListedSample(file, label, split))
            folders_of[label].add(rest[1:])
    if _have_other_meaning(set(folders_of)):
        return [], ""
    _refuse_nested(tree, samples, folders_of)
    samples.sort(key=lambda sample: in_order(str(sample.target)))
    understood = "one folder of images for each class"
    if any(any(folders) for folders in folders_of.values()):
        understood += ", with the folders inside of it"
    return samples, understood


def _have_other_meaning(names: set[str]) -> bool:
    """Whether folders are named like images and masks, or like splits but for one."""
    if {"images", "masks"} & {name.lower() for name in names}:
        return True
    splits = {name for name in names if split_in(name)}
    return bool(splits) and len(names - splits) < 2


def _wrappers(folders: Sequence[tuple[str, ...]]) -> int:
    """Return the number of folders around everything, as archives have, but for those of splits."""
    count = 0
    while folders and all(len(parts) > count + 1 for parts in folders):
        names = {parts[count] for parts in folders}
        if len(names) > 1 or _split(tuple(names)):
            break
        count += 1
    return count


def _split(folders: Sequence[str]) -> str:
    """Return the split of the first folder that is named like one: `train`, `seg_train`; else ""."""
    for name in folders:
        split = split_in(name)
        if split:
            return split
    return ""


def _without_splits(folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in folders if not split_in(name))


def _refuse_nested(
    tree: Tree, samples: list[ListedSample], folders_of: dict[str, set[tuple[str, ...]]]
) -> None:
    """Refuse folders that all hold the same several folders: sites or patients, perhaps, with classes."""
    inner = []
    for folders in folders_of.values():
        # "" for files that lie in the folder itself
        inner.append({rest[0] if rest else "" for rest in folders})
    all_alike = len(inner) > 1 and all(names == inner[0] for names in inner)
    if not all_alike or len(inner[0]) < 2 or "" in inner[0]:
        return
    parts = [composed(name) for name in tree.relative(samples[0].image).parts]
    depth = parts.index(str(samples[0].target))
    outer, outer_key = join_first(sorted(folders_of)), _key_of_level(depth)
    nested, nested_key = join_first(sorted(inner[0])), _key_of_level(depth + 1)
    raise UserError(
        "a folder with one possible reading",
        f"{tree}: each of the folders {outer} holds the folders {nested}",
        f"Say under [data] which are the classes: {outer}: {outer_key}; or {nested}: {nested_key}.",
    )


def _key_of_level(depth: int) -> str:
    """Return the key that makes classes of the folders at this depth."""
    above = "[^/]+/" * depth
    return f"label_pattern = '^{above}([^/]+)/'"


def refuse_masks_among(tree: Tree, samples: list[ListedSample]) -> None:
    """Refuse classes of which one alone has few values, as masks do: one of two, or one named like masks.

    Raises:
        UserError: With the keys for either reading.
    """
    files_of: dict[str, list[Path]] = defaultdict(list)
    for sample in samples:
        files_of[str(sample.target)].append(sample.image)
    # More classes are no pair of images and masks, and reading some of each takes time.
    if not 2 <= len(files_of) <= _COMPARED:
        return
    hinted = [name for name in files_of if hint_of(name)[0] == "mask"]
    # Of several classes, one with few values is suspicious only if it is named like masks.
    if len(files_of) > 2 and len(hinted) != 1:
        return
    masks = []
    for name, files in files_of.items():
        seen = [one for one in map(glance, spread(files)) if one is not None]
        if seen and all(one.few for one in seen):
            masks.append(name)
    if len(masks) != 1 or (len(files_of) > 2 and masks != hinted):
        return
    others = join_first([f"{name}/" for name in files_of if name != masks[0]])
    raise UserError(
        "a folder with one possible reading",
        f"{tree}: the images in {masks[0]}/ have few values, as masks do, unlike those in {others}",
        "If they are the masks, rename the files so that they pair with the images by name. If both are "
        f"classes, say so under [data]: {by_folder(tree)}.",
    )


def by_folder(tree: Tree) -> str:
    """Return the key that makes a class of each folder: of the first, or of the last of several levels."""
    deep = any(len(tree.relative(file).parts) > 2 for file in tree.images)
    return "label_pattern = '([^/]+)/[^/]+$'" if deep else "label_pattern = '^([^/]+)/'"


def list_labels(tree: Tree, pattern: str) -> tuple[list[ListedSample], str]:
    """List the images with the class that a pattern finds in the name of each file, else in its path.

    Folders give the splits. A test set without classes is left out.

    Raises:
        UserError: If the pattern finds nothing in the name of an image.
    """
    samples, nameless = [], []
    for file in tree.images:
        path = tree.relative(file)
        split = _split(path.parts[:-1])
        label = search(pattern, composed(path.as_posix()))
        if label:
            samples.append(ListedSample(file, label, split))
        elif split != "test":
            nameless.append(path.as_posix())
    if nameless or not samples:
        raise UserError(
            f"a class in the name of every image, as label_pattern = {pattern!r} finds it",
            f"{join_first(nameless) or 'no images'} in {tree.root}",
            "Correct the pattern: what its first brackets (or all of it) match is the class. Or move these "
            "files away.",
        )
    samples.sort(key=lambda sample: in_order(str(sample.target)))
    how = f"classes in the names of files, as label_pattern = {pattern!r} finds them"
    return samples, how


def search(pattern: str, path: str) -> str | None:
    """Return what the first group of a pattern (or all of it) matches in a file's name, else in its path."""
    match = re.search(pattern, path.rpartition("/")[2]) or re.search(pattern, path)
    if match is None:
        return None
    return match[1] if match.re.groups else match[0]
