"""Images with classes in the names of their folders, or where `label_pattern` finds them."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
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
    inner_of = _folders_inside_wrappers(tree)
    divided = _are_divided(inner_of.values())
    samples = []
    folders_of: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for file, folders in inner_of.items():
        split = ""
        rest = folders
        if divided:
            split = _split(folders)
            rest = _without_splits(folders)
            if not split:
                continue  # files outside of all splits are no samples
        if rest:
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


def _folders_inside_wrappers(tree: Tree) -> dict[Path, tuple[str, ...]]:
    folders_of = tree.folders
    skipped = _wrappers(list(filter(None, folders_of.values())))
    return {file: folders[skipped:] for file, folders in folders_of.items()}


def _are_divided(folders_of_files: Iterable[tuple[str, ...]]) -> bool:
    """Whether some folder of a split holds, or lies in, a folder that is not."""
    return any(
        _split(folders) and _without_splits(folders) for folders in folders_of_files
    )


def _have_other_meaning(names: set[str]) -> bool:
    """Whether folders are named like images and masks, or like splits but for one."""
    lower = set(map(str.lower, names))
    if "images" in lower or "masks" in lower:
        return True
    splits = set(filter(split_in, names))
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
    return tuple([name for name in folders if not split_in(name)])


def _refuse_nested(
    tree: Tree,
    samples: list[ListedSample],
    folders_of: dict[str, set[tuple[str, ...]]],
) -> None:
    """Refuse folders that all hold the same several folders: sites or patients, perhaps, with classes."""
    if len(folders_of) < 2:
        return
    inner_sets = [_first_names(folders) for folders in folders_of.values()]
    inner = inner_sets[0]
    all_alike = inner_sets.count(inner) == len(inner_sets)
    if not all_alike or len(inner) < 2 or "" in inner:
        return
    first = samples[0]
    path = [composed(name) for name in tree.relative(first.image).parts]
    depth = path.index(str(first.target))
    outer = join_first(sorted(folders_of))
    outer_key = _key_of_level(depth)
    nested = join_first(sorted(inner))
    nested_key = _key_of_level(depth + 1)
    raise UserError(
        "a folder with one possible reading",
        f"{tree}: each of the folders {outer} holds the folders {nested}",
        f"Say under [data] which are the classes: {outer}: {outer_key}; or {nested}: {nested_key}.",
    )


def _first_names(folders: set[tuple[str, ...]]) -> set[str]:
    """Return the names of the folders inside of a folder, with "" for files that lie in it itself."""
    names = set()
    for rest in folders:
        names.add(rest[0] if rest else "")
    return names


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
    hinted = []
    for name in files_of:
        role, _ = hint_of(name)
        if role == "mask":
            hinted.append(name)
    # Of several classes, one with few values is suspicious only if it is named like masks.
    if len(files_of) > 2 and len(hinted) != 1:
        return
    masks = [name for name, files in files_of.items() if _have_few_values(files)]
    if len(masks) != 1 or (len(files_of) > 2 and masks != hinted):
        return
    suspect = masks[0]
    others = [f"{name}/" for name in files_of if name != suspect]
    raise UserError(
        "a folder with one possible reading",
        f"{tree}: the images in {suspect}/ have few values, as masks do, unlike those in {join_first(others)}",
        "If they are the masks, rename the files so that they pair with the images by name. If both are "
        f"classes, say so under [data]: {by_folder(tree)}.",
    )


def _have_few_values(files: Sequence[Path]) -> bool:
    """Whether each of a few images that can be read has few values, as masks do."""
    seen = False
    # Only a few: they are decoded, which takes time.
    for glimpse in map(glance, spread(files)):
        if glimpse is None:
            continue
        if not glimpse.few:
            return False
        seen = True
    return seen


def by_folder(tree: Tree) -> str:
    """Return the key that makes a class of each folder: of the first, or of the last of several levels."""
    for file in tree.images:
        if len(tree.relative(file).parts) > 2:
            return "label_pattern = '([^/]+)/[^/]+$'"
    return "label_pattern = '^([^/]+)/'"


def list_labels(tree: Tree, pattern: str) -> tuple[list[ListedSample], str]:
    """List the images with the class that a pattern finds in the name of each file, else in its path.

    Folders give the splits. A test set without classes is left out.

    Raises:
        UserError: If the pattern finds nothing in the name of an image.
    """
    samples = []
    nameless = []
    for file in tree.images:
        path = tree.relative(file)
        split = _split(path.parts[:-1])
        label = search(pattern, composed(path.as_posix()))
        if label:
            samples.append(ListedSample(file, label, split))
        # Published test sets often come without their classes.
        elif split != "test":
            nameless.append(path.as_posix())
    if nameless or not samples:
        received = join_first(nameless) or "no images"
        raise UserError(
            f"a class in the name of every image, as label_pattern = {pattern!r} finds it",
            f"{received} in {tree.root}",
            "Correct the pattern: what its first brackets (or all of it) match is the class. Or move these "
            "files away.",
        )
    samples.sort(key=lambda sample: in_order(str(sample.target)))
    how = f"classes in the names of files, as label_pattern = {pattern!r} finds them"
    return samples, how


def search(pattern: str, path: str) -> str | None:
    """Return what the first group of a pattern (or all of it) matches in a file's name, else in its path."""
    _, _, file_name = path.rpartition("/")
    # The name of the file first: the folders above it may match by chance.
    match = re.search(pattern, file_name) or re.search(pattern, path)
    if match is None:
        return None
    if match.re.groups:
        return match[1]
    return match[0]
