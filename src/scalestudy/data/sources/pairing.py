"""Pair images and masks by the names of their files: names first, numbers only where names do not decide."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from scalestudy.data.sources.files import composed
from scalestudy.data.sources.naming import (
    Naming,
    Rule,
    naming_without_ends,
    numbers_in,
    tokens_of,
    tokens_without_split,
    without_words,
)
from scalestudy.util.errors import UserError
from scalestudy.util.text import join_first, plural

PATTERNS = '`images = "FOLDER/*"` and `masks = "FOLDER/*"` under [data]'

BY_NAME = Naming("by name", composed, composed)
BY_WORDS = Naming(
    "by their names without capitals and words like image and mask",
    without_words,
    without_words,
)
BY_NUMBERS = Naming("by the numbers in their names", numbers_in, numbers_in)

Key = tuple[str, str, str]
"""Split, shared folder and reduced name of a file."""


class Located(NamedTuple):
    """An image or a mask.

    Attributes:
        split: Its split, or "".
        folder: Folders that it shares with its partner.
        branch: Name of the folder that makes it an image or a mask.
    """

    file: Path
    split: str = ""
    folder: str = ""
    branch: str = ""


def match_masks(
    images: Sequence[Located], masks: Sequence[Located]
) -> tuple[list[tuple[Located, Located]], str]:
    """Pair each image with its mask; return the pairs in the images' order, and the rule that was used.

    Names are compared as they are, without capitals and words such as "image" and "mask", or without what
    all images and all masks have in common ("_manual1"), last also without the name of a split ("_test");
    the rule with most matches is used. Only if none finds a single pair, and the names of each side differ in
    nothing but numbers, these are compared.

    Raises:
        UserError: If an image has no mask, a mask has no image (names up to 5 of each), or a name occurs
            twice.
    """
    naming = best_naming(images, masks)
    image_of = _by_key(images, naming.of_image)
    mask_of = _by_key(masks, naming.of_mask)
    alone = []
    lone_images = _without_partner(image_of, mask_of)
    if lone_images:
        count = len(lone_images)
        noun = plural("image", count)
        alone.append(f"{count} {noun} without a mask: {join_first(lone_images)}")
    lone_masks = _without_partner(mask_of, image_of)
    if lone_masks:
        count = len(lone_masks)
        noun = plural("mask", count)
        alone.append(f"{count} {noun} without an image: {join_first(lone_masks)}")
    if alone:
        raise UserError(
            "a mask of the same name for every image, and an image for every mask",
            "; ".join(alone),
            "Add what is missing, or rename the files so that they pair (the extension may differ). If these "
            f"are not the images and masks, say where they are: {PATTERNS}.",
        )
    pairs = [(image, mask_of[key]) for key, image in image_of.items()]
    image, mask = pairs[0]
    how = naming.how
    if composed(image.file.stem) != composed(mask.file.stem):
        how += f" ({image.file.name} with {mask.file.name})"
    return pairs, how


def _without_partner(
    located_of: Mapping[Key, Located], partners: Mapping[Key, Located]
) -> list[str]:
    names = []
    for key, located in located_of.items():
        _, _, reduced = key
        # A name of which the rule leaves nothing would pair with any other such name.
        if not reduced or key not in partners:
            names.append(str(located.file))
    return names


def best_naming(images: Sequence[Located], masks: Sequence[Located]) -> Naming:
    """Return the way of comparing names by which most images find a mask, the first of equals."""
    best = BY_NAME
    most = 0
    most_possible = min(len(images), len(masks))
    for naming in _namings(images, masks):
        count = len(matched_keys(images, masks, naming))
        # Of equals the first, which drops the least of the names.
        if count > most:
            best = naming
            most = count
        if most == most_possible:
            break  # no other can find more
    # Numbers come last: `cell_1` and `vein_1` have one number, and may yet be no partners.
    if most == 0 and _differ_in_numbers(images) and _differ_in_numbers(masks):
        return BY_NUMBERS
    return best


def _namings(images: Sequence[Located], masks: Sequence[Located]) -> Iterator[Naming]:
    yield BY_NAME
    yield BY_WORDS
    image_names = [image.file.stem for image in images]
    mask_names = [mask.file.stem for mask in masks]
    yield naming_without_ends(
        image_names,
        mask_names,
        "what they have in common",
        tokens_of,
    )
    yield naming_without_ends(
        image_names,
        mask_names,
        "what they have in common, and splits",
        tokens_without_split,
    )


def matched_keys(
    images: Sequence[Located],
    masks: Sequence[Located],
    naming: Naming,
) -> set[Key]:
    """Return the keys that images and masks share; none if the rule gives two names of a side one key."""
    of_images = {_key(image, naming.of_image) for image in images}
    of_masks = {_key(mask, naming.of_mask) for mask in masks}
    images_differ = len(of_images) == len(images)
    masks_differ = len(of_masks) == len(masks)
    unique = images_differ and masks_differ
    # Names as they are may repeat: `match_masks` refuses these files by name.
    if not unique and naming is not BY_NAME:
        return set()
    keys = set()
    for key in of_images & of_masks:
        _, _, reduced = key
        if reduced:
            keys.add(key)
    return keys


def matched(
    images: Sequence[Located], masks: Sequence[Located]
) -> list[tuple[Located, Located]]:
    """Return the images that find a mask, with it."""
    naming = best_naming(images, masks)
    keys = matched_keys(images, masks, naming)
    mask_of = {_key(mask, naming.of_mask): mask for mask in masks}
    pairs = []
    for image in images:
        key = _key(image, naming.of_image)
        if key in keys:
            pairs.append((image, mask_of[key]))
    return pairs


def _key(located: Located, rule: Rule) -> Key:
    return located.split, composed(located.folder), rule(located.file.stem)


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


def _differ_in_numbers(side: Sequence[Located]) -> bool:
    """Whether all names of a side have numbers, and are equal but for these, unlike `a1` and `b2`."""
    forms = set()
    for located in side:
        name = composed(located.file.stem)
        forms.add(re.sub(r"\d+", "#", name))
    if len(forms) != 1:
        return False
    return "#" in forms.pop()
