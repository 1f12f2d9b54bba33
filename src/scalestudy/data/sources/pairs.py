"""Images with one mask each, found by the names of their folders or files, or by patterns.

The names of folders give role and split, in any order: `images/` and `masks/`, `train/images/` and
`train/masks/`, `images/train/` and `masks/train/`, `train_images/` and `train_masks/`, `train/` and
`train_labels/`. Other folders around or inside of these, such as one for each patient, must be the same for
an image and its mask. Images and masks may also be in one folder (`a.png` with `a_mask.png`).
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from scalestudy.config.settings import DataSettings
from scalestudy.data.sources.files import (
    READ_SUFFIXES,
    ListedSample,
    Tree,
    is_mask_folder,
    is_system_name,
    role,
    several,
    strip_suffix,
)
from scalestudy.util.errors import UserError

PATTERNS = '`images = "FOLDER/*"` and `masks = "FOLDER/*"` under [data]'
_LEAST = 0.25
"""Minimum share of masks among the files of a folder; it is 1/2 for complete pairs."""


class Located(NamedTuple):
    """An image or a mask, its split, and the folders that it shares with its partner."""

    file: Path
    split: str = ""
    folder: str = ""


class Pairs(NamedTuple):
    """Images and masks, not yet paired, and where they are, in words."""

    images: list[Located]
    masks: list[Located]
    where: str

    def list(self) -> tuple[list[ListedSample], str]:
        """Return the samples, and how they were understood. A test set without masks is left out.

        Raises:
            UserError: If an image has no mask, a mask has no image, or a name occurs twice.
        """
        masked = {mask.split for mask in self.masks}
        images = [image for image in self.images if image.split != "test" or "test" in masked]
        pairs, how = match_masks(images, self.masks)
        samples = [ListedSample(image.file, mask.file, image.split) for image, mask in pairs]
        return samples, f"{self.where}, paired {how}"


def find_pairs(tree: Tree) -> Pairs | None:
    """Return images and masks that the names of folders or files tell apart; None if they do not."""
    of_role: dict[str | None, list[Located]] = {"image": [], "mask": [], None: []}
    mask_folders = set()
    for file in tree.images:
        what, split, rest = None, "", []
        for name in tree.relative(file).parts[:-1]:
            inner_what, inner_split = role(name)
            what, split = inner_what or what, inner_split or split
            rest += [name] * (not inner_what and not inner_split)
            if inner_what == "mask":
                mask_folders.add(name)
        of_role[what].append(Located(file, split, "/".join(rest)))
    images, masks, others = of_role["image"], of_role["mask"], of_role[None]
    if masks and not images and all(map(is_mask_folder, mask_folders)):
        # Folders of another name with the same file names hold the images: train/ beside train_labels/.
        masks = [Located(file, split) for file, split, _ in masks]
        names = {_without_words(mask.file.stem) for mask in masks}
        alike = {file.parent for file, _, _ in others if _without_words(file.stem) in names}
        alike = {folder for folder in alike if folder != tree.root and "mask" not in folder.name.lower()}
        images = [Located(file, split) for file, split, _ in others if file.parent in alike]
    if images and masks:
        splits = [{located.split for located in side} for side in (images, masks)]
        if splits[0] != splits[1] and {""} in splits and all(len(of_side) == 1 for of_side in splits):
            # One name alone mentions a split: train_images/ beside annotations/.
            images, masks = ([located._replace(split="") for located in side] for side in (images, masks))
        shown = [tree.relative(side[-1].file).parent.as_posix() for side in (images, masks)]
        likewise = " (likewise other splits)" if len({image.split for image in images}) > 1 else ""
        return Pairs(images, masks, f"{shown[0]}/ and {shown[1]}/{likewise}")
    return None if masks or images else _side_by_side(others)


def _side_by_side(files: Sequence[Located]) -> Pairs | None:
    roles = [strip_suffix(located.file.stem)[1] for located in files]
    masks = [located for located, what in zip(files, roles, strict=True) if what == "mask"]
    images = [located for located, what in zip(files, roles, strict=True) if what != "mask"]
    if len(masks) < _LEAST * len(files):
        return None
    keys = [{_key(located, _without_words) for located in side} for side in (images, masks)]
    if keys[0].isdisjoint(keys[1]):
        return None
    return Pairs(images, masks, "images and masks in one folder")


def list_patterns(tree: Tree, data: DataSettings) -> tuple[list[ListedSample], str]:
    """Pair the images and masks that patterns of [data] match.

    Raises:
        UserError: If a pattern is missing or matches nothing, if both match a file, or as in `Pairs.list`.
    """
    images, masks = (_matching(tree.root, key, getattr(data, key)) for key in ("images", "masks"))
    if both := sorted({image.file for image in images} & {mask.file for mask in masks}):
        raise UserError(
            "patterns that tell images and masks apart",
            f"{both[0]}, which matches both",
            "Make the patterns more specific.",
        )
    return Pairs(images, masks, f"images {data.images} and masks {data.masks}").list()


def _matching(root: Path, key: str, pattern: str | None) -> list[Located]:
    if pattern is None:
        raise UserError("`images` and `masks` under [data]", f"no `{key}`", f'Add {key} = "PATTERN".')
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
    return [Located(file) for file in files]


Rule = Callable[[str], str]
Key = tuple[str, str, str]
"""Split, shared folder and reduced name of a file."""


def _without_words(stem: str) -> str:
    rest, word = strip_suffix(stem)
    return _without_words(rest) if word else rest.lower()


def _numbers(stem: str) -> str:
    return "-".join(str(int(number)) for number in re.findall(r"\d+", stem))


def _key(located: Located, rule: Rule) -> Key:
    return located.split, located.folder, rule(located.file.stem)


_RULES: tuple[tuple[str, Rule], ...] = (
    ("by name", lambda stem: stem),
    ("by their names without capitals and words like image and mask", _without_words),
    ("by the numbers in their names", _numbers),
)


def match_masks(
    images: Sequence[Located], masks: Sequence[Located]
) -> tuple[list[tuple[Located, Located]], str]:
    """Pair each image with its mask; return the pairs in the images' order, and the rule that was used.

    Names are compared as they are, without capitals and words such as "image" and "mask", or by their
    numbers; the rule with most matches is used.

    Raises:
        UserError: If an image has no mask, a mask has no image (names up to 5), or a name occurs twice.
    """

    def matches(rule: Rule) -> int:
        return len({_key(image, rule) for image in images} & {_key(mask, rule) for mask in masks})

    how, rule = max(_RULES, key=lambda item: matches(item[1]))  # the first of equals
    image_of, mask_of = (_by_key(side, rule) for side in (images, masks))
    alone = [
        located.file
        for located_of, partners in ((image_of, mask_of), (mask_of, image_of))
        for key, located in located_of.items()
        if key not in partners
    ]
    if alone:
        raise UserError(
            "a mask of the same name for every image, and an image for every mask",
            f"{several([str(file) for file in alone])} without a partner",
            "Add what is missing, or rename the files so that they pair (the extension may differ). If these "
            f"are not the images and masks, say where they are: {PATTERNS}.",
        )
    pairs = [(image, mask_of[key]) for key, image in image_of.items()]
    image, mask = pairs[0]
    exact = image.file.stem == mask.file.stem
    return pairs, how if exact else f"{how} ({image.file.name} with {mask.file.name})"


def _by_key(side: Sequence[Located], rule: Rule) -> dict[Key, Located]:
    of_key: dict[Key, Located] = {}
    for located in side:
        other = of_key.setdefault(_key(located, rule), located)
        if other is not located:
            raise UserError(
                "one file for each name",
                f"{other.file} and {located.file}",
                f"Rename or remove one of the two, or say where images and masks are: {PATTERNS}.",
            )
    return of_key
