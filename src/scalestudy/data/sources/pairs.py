"""Images with masks, found by the names of their folders or files, or by patterns.

The names of folders give role and split, in any order: `images/` and `masks/`, `train/images/` and
`train/masks/`, `images/train/` and `masks/train/`, `train_images/` and `train_masks/`, `train/` and
`train_labels/`. Other folders around or inside of these, such as one for each patient, must be the same for
an image and its mask. Images and masks may also be in one folder (`a.png` with `a_mask.png`). An image may
have a mask for each object (as in the Data Science Bowl 2018, J. C. Caicedo et al., Nature Methods 16, 2019).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
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
from scalestudy.data.sources.naming import common_start, tokens_of, without_words
from scalestudy.data.sources.pairing import Located, match_masks, matched
from scalestudy.util.errors import UserError

_LEAST = 0.25
"""Minimum share of masks among the files of a folder; it is 1/2 for complete pairs."""
_MOST = 0.5
"""Share of the images for which a folder of masks must have partners, to be one that can be meant."""


Meaning = tuple[str | None, str | None]
"""Role and split that the name of a folder gives; see `role`."""
Place = tuple[str, str]
"""Split and folder of a file."""


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
        images = self.images
        # Published test sets often come without their masks.
        if "test" not in _splits(self.masks):
            images = [image for image in images if image.split != "test"]
        objects = _objects(images, self.masks)
        if objects:
            return objects, _describe_objects(objects)
        _refuse_choices(self.root, images, self.masks)
        pairs, how = match_masks(images, self.masks)
        understood = f"{self.where}, paired {how}"
        return _samples_of(pairs), understood


def find_pairs(tree: Tree) -> Pairs | None:
    """Return images and masks that the names of folders or files tell apart; None if they do not."""
    role_of = _roles_of_folders(tree)
    of_role: dict[str | None, list[Located]] = defaultdict(list)
    mask_folders = set()
    for file in tree.images:
        # Of nested folders with a role or a split, the innermost decides.
        what, split, branch, rest = None, "", "", []
        for name in tree.folders[file]:
            inner_what, inner_split = role_of[name]
            if inner_what:
                what, branch = inner_what, name
            if inner_what == "mask":
                mask_folders.add(name)
            if inner_split:
                split = inner_split
            if not inner_what and not inner_split:
                rest.append(name)
        located = Located(file, split, "/".join(rest), branch)
        of_role[what].append(located)
    images = of_role["image"]
    masks = of_role["mask"]
    others = of_role[None]
    masks_alone = bool(masks) and not images
    if masks_alone and all(map(is_mask_folder, mask_folders)):
        images, masks = _with_unnamed_images(tree, masks, others)
    if images and masks:
        return _pairs_of(tree, images, masks)
    # One side alone makes no pairs; another layout may fit.
    if images or masks:
        return None
    return _side_by_side(tree, others)


def _samples_of(pairs: Iterable[tuple[Located, Located]]) -> list[ListedSample]:
    samples = []
    for image, mask in pairs:
        samples.append(ListedSample(image.file, mask.file, image.split))
    return samples


def _describe_objects(objects: Sequence[ListedSample]) -> str:
    count = 0
    for sample in objects:
        count += len(sample.files) - 1  # without the image
    return (
        f"a folder for each image with a mask of each object: {count} objects in {len(objects)} "
        "images, joined to background and foreground"
    )


def _roles_of_folders(tree: Tree) -> dict[str, Meaning]:
    """Return what each name of a folder means."""
    names: set[str] = set()
    for parts in tree.folders.values():
        names.update(parts)
    paired_names = _names_with_counterparts(names)
    # Folders x and y beside other letters are classes of an alphabet, not inputs and targets.
    letters = {name.lower() for name in names if len(name) == 1}
    alphabet = bool(letters - {"x", "y"})
    roles = {}
    for name in names:
        what, split = role(name)
        if not what:
            what = paired_names.get(name)
        if alphabet and len(name) == 1:
            what = None
        roles[name] = what, split
    return roles


def _names_with_counterparts(names: Iterable[str]) -> dict[str, str]:
    """Return the roles of folder names of which another is equal but for its role.

    `images_collective` counts as images only beside `masks_collective`.
    """
    hinted: dict[frozenset[str], dict[str, str]] = defaultdict(dict)
    for name in names:
        what, rest = hint_of(name)
        if what and role(name)[0] is None:
            hinted[rest][name] = what
    roles: dict[str, str] = {}
    for of_equal_rest in hinted.values():
        if set(of_equal_rest.values()) == {"image", "mask"}:
            roles |= of_equal_rest
    return roles


def _with_unnamed_images(
    tree: Tree,
    masks: list[Located],
    others: list[Located],
) -> tuple[list[Located], list[Located]]:
    """Find the images in folders of another name with the files' names: train/ beside train_labels/."""
    names = {without_words(mask.file.stem) for mask in masks}
    alike = []
    for other in others:
        if without_words(other.file.stem) in names:
            alike.append(other)
    if len(alike) < _MOST * len(names):  # single files of one name by chance
        return [], masks
    folders = set()
    for other in alike:
        folder = other.file.parent
        # Files in the root itself are not told apart by a folder; a second folder of masks is no images.
        if folder != tree.root and "mask" not in folder.name.lower():
            folders.add(folder)
    images = []
    for other in others:
        folder = other.file.parent
        if folder in folders:
            image = other._replace(folder="", branch=folder.name)
            images.append(image)
    # Without their folders, as the folders' names differ between images and masks.
    flat_masks = [mask._replace(folder="") for mask in masks]
    return images, flat_masks


def _pairs_of(tree: Tree, images: list[Located], masks: list[Located]) -> Pairs:
    of_images = _splits(images)
    of_masks = _splits(masks)
    one_each = len(of_images) == len(of_masks) == 1
    one_nameless = {""} in (of_images, of_masks)
    if one_each and one_nameless and of_images != of_masks:
        # One name alone mentions a split: train_images/ beside annotations/.
        images = _without_splits(images)
        masks = _without_splits(masks)
    kept_images = _without_own_folders(images, masks)
    kept_masks = _without_own_folders(masks, images)
    last_image = tree.relative(kept_images[-1].file).parent
    last_mask = tree.relative(kept_masks[-1].file).parent
    where = f"{last_image.as_posix()}/ and {last_mask.as_posix()}/"
    if len(_splits(kept_images)) > 1:
        where += " (likewise other splits)"
    return Pairs(tree.root, kept_images, kept_masks, where)


def _splits(side: Iterable[Located]) -> set[str]:
    return {located.split for located in side}


def _without_splits(side: Iterable[Located]) -> list[Located]:
    return [located._replace(split="") for located in side]


def _without_own_folders(side: list[Located], other: list[Located]) -> list[Located]:
    """Drop the folders that all files of one side share and none of the other has: annotations/trimaps/."""
    own = _folders_of_all(side)
    for located in other:
        own.difference_update(_folders(located))
    if not own - {""}:
        return side
    kept = []
    for located in side:
        names = [name for name in _folders(located) if name not in own]
        folder = "/".join(names)
        kept.append(located._replace(folder=folder))
    return kept


def _folders(located: Located) -> list[str]:
    return located.folder.split("/")


def _folders_of_all(side: list[Located]) -> set[str]:
    folders = [set(_folders(located)) for located in side]
    return set.intersection(*folders)


def _objects(images: list[Located], masks: list[Located]) -> list[ListedSample]:
    """Return samples with a mask for each object; empty unless each folder holds one image, some more masks.

    An image whose folder has no mask makes the set one of ordinary pairs, which name it.
    """
    masks_of: dict[Place, list[Path]] = defaultdict(list)
    for mask in masks:
        masks_of[mask.split, mask.folder].append(mask.file)
    image_of: dict[Place, Located] = {}
    for image in images:
        image_of[image.split, image.folder] = image
    several_masks = len(masks) > len(masks_of)
    one_image_each = len(image_of) == len(images)
    same_places = image_of.keys() == masks_of.keys()
    if not several_masks or not one_image_each or not same_places:
        return []
    samples = []
    for place, image in image_of.items():
        objects = ObjectMasks(tuple(masks_of[place]))
        samples.append(ListedSample(image.file, objects, image.split))
    return samples


def _refuse_choices(root: Path, images: list[Located], masks: list[Located]) -> None:
    """Refuse several folders, or several ends of names, that can be the images or the masks.

    Raises:
        UserError: Names them, with the keys that choose one.
    """
    sides = (
        ("masks", masks, images),
        ("images", images, masks),
    )
    for what, side, other in sides:
        choices = _folders_to_choose(side, other) or _ends_to_choose(side, other)
        if not choices:
            continue
        others = pattern_of(root, [located.file for located in other])
        patterns = []
        readings = []
        for end, files in choices:
            pattern = pattern_of(root, files, end)
            patterns.append(pattern)
            if what == "masks":
                readings.append(f'images = "{others}" and masks = "{pattern}"')
            else:
                readings.append(f'images = "{pattern}" and masks = "{others}"')
        found = " and ".join(patterns)
        ways = "; or ".join(readings)
        raise UserError(
            f"one folder or kind of file for the {what}",
            f"{len(patterns)} that can be the {what} in {root}: {found}",
            f"Choose one under [data]: {ways}.",
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
        splits = _splits(of_one)
        near = [located for located in other if located.split in splits]
        found = {partner.file for partner, _ in matched(near, of_one)}
        most_possible = min(len(near), len(of_one))
        if found and len(found) >= _MOST * most_possible:
            partners[branch] = found
    choices: Choices = []
    for branch, found in sorted(partners.items()):
        of_rivals: set[Path] = set()
        for rival, of_rival in partners.items():
            if rival != branch:
                of_rivals |= of_rival
        # Folders with different partners, as of two kinds of images, are no choice.
        if found & of_rivals:
            files = [located.file for located in of_branch[branch]]
            choices.append(("", files))
    return choices


def _ends_to_choose(side: list[Located], other: list[Located]) -> Choices:
    """Return ends of names that follow the name of a partner, if several follow most: `_color`."""
    if len(side) < (1 + _MOST) * len(other):
        return []
    tokens_of_others = [tokens_of(located.file.stem) for located in other]
    same_end = len(common_start([tokens[::-1] for tokens in tokens_of_others]))
    # `a_image` also counts without the end that all have: `a_color` and `a_mask` follow `a`.
    names = set()
    for tokens in tokens_of_others:
        names.add(tuple(tokens))
        without_end = tokens[: len(tokens) - same_end]
        names.add(tuple(without_end))
    of_end: dict[str, list[Path]] = defaultdict(list)
    for located in side:
        end = _end_after(located.file.stem, names)
        if end is not None:
            of_end[end].append(located.file)
    choices = []
    for end, files in sorted(of_end.items()):
        if len(files) >= _MOST * len(other):
            choices.append((end, files))
    if len(choices) < 2:
        return []
    return choices


def _end_after(stem: str, names: set[tuple[str, ...]]) -> str | None:
    """Return what follows the longest of these names at the start of a stem; None if none is there."""
    tokens = tokens_of(stem)
    for stop in range(len(tokens) - 1, 0, -1):
        start = tokens[:stop]
        if tuple(start) in names:
            # Cut from the stem itself: the tokens are in lower case.
            return stem[len("".join(start)) :]
    return None


def pattern_of(root: Path, files: Sequence[Path], end: str = "") -> str:
    """Return a pattern, relative to `root`, that matches files of one depth: `*/images/*`."""
    folders = []
    for file in files:
        *above, _ = file.relative_to(root).parts
        folders.append(above)
    names = []
    # `zip` ends with the shortest path; what is below it is left to "**".
    for level in zip(*folders, strict=False):
        one_name = len(set(level)) == 1
        names.append(level[0] if one_name else "*")
    depths = set(map(len, folders))
    if len(depths) > 1:
        names.append("**")
    names.append(f"*{end}.*" if end else "*")
    return "/".join(names)


def _side_by_side(tree: Tree, files: Sequence[Located]) -> Pairs | None:
    images: list[Located] = []
    masks: list[Located] = []
    for located in files:
        _, what = strip_suffix(located.file.stem)
        side = masks if what == "mask" else images
        side.append(located)
    # A few files with such a word at their end may be images like the others.
    if len(masks) < _LEAST * len(files):
        return None
    if not matched(images, masks):
        return None
    return Pairs(tree.root, images, masks, "images and masks in one folder")


def list_patterns(tree: Tree, data: DataSettings) -> tuple[list[ListedSample], str]:
    """Pair the images and masks that patterns of [data] match.

    Folders that differ within a side tell files of one name apart, and give the splits.

    Raises:
        UserError: If a pattern is missing or matches nothing, if both match a file, or as in `match_masks`.
    """
    images = _matching(tree.root, "images", data.images)
    masks = _matching(tree.root, "masks", data.masks)
    files_of_images = {image.file for image in images}
    both = files_of_images.intersection(mask.file for mask in masks)
    if both:
        raise UserError(
            "patterns that tell images and masks apart",
            f"{min(both)}, which matches both",
            "Make the patterns more specific.",
        )
    if _splits(images) != _splits(masks):
        images = _without_splits(images)
        masks = _without_splits(masks)
    pairs, how = match_masks(images, masks)
    understood = f"images {data.images} and masks {data.masks}, paired {how}"
    return _samples_of(pairs), understood


def _matching(root: Path, key: str, pattern: str | None) -> list[Located]:
    if pattern is None:
        raise UserError(
            "`images` and `masks` under [data]",
            f"no `{key}`",
            f'Add {key} = "PATTERN".',
        )
    files = []
    try:
        for file in root.glob(pattern):
            names = file.relative_to(root).parts
            hidden = any(map(is_system_name, names))
            readable = file.name.lower().endswith(READ_SUFFIXES)
            if readable and not hidden and file.is_file():
                files.append(file)
        problem = "" if files else f"none in {root}"
    # `glob` raises them for an empty and for an absolute pattern.
    except (ValueError, NotImplementedError) as error:
        problem = str(error)
    if problem:
        raise UserError(
            f"images that {key} = {pattern!r} matches",
            problem,
            "Correct the pattern: it is relative to the source; * stands for any name, ** for any folders.",
        )
    return _located(root, sorted(files))


def _located(root: Path, files: list[Path]) -> list[Located]:
    """Return files with the folders in which they differ; a folder with a role is none of these."""
    folders_of = {}
    for file in files:
        *folders, _ = file.relative_to(root).parts
        folders_of[file] = folders
    shared = set.intersection(*map(set, folders_of.values()))
    located = []
    for file, folders in folders_of.items():
        own = [name for name in folders if name not in shared]
        split = ""
        rest = []
        for name in own:
            if not split:
                split = split_in(name) or ""
            if role(name) == (None, None):
                rest.append(name)
        located.append(Located(file, split, "/".join(rest)))
    # Splits count only if they divide all files and one is to train on.
    splits = _splits(located)
    if "train" not in splits or "" in splits:
        return _without_splits(located)
    return located
