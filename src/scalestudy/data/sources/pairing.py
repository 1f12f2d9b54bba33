"""Pair images and masks by the names of their files: names first, numbers only where names do not decide."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from scalestudy.data.sources.files import composed, split_of, strip_suffix
from scalestudy.util.errors import UserError
from scalestudy.util.text import join_first, plural

PATTERNS = '`images = "FOLDER/*"` and `masks = "FOLDER/*"` under [data]'
_TOKEN = re.compile(r"\d+|[^\W\d_]+|[\W_]+")
_BETWEEN = "-_. "


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


Rule = Callable[[str], str]
"""Reduces the name of a file to the part that its partner has too; "" if there is none."""
Key = tuple[str, str, str]
"""Split, shared folder and reduced name of a file."""


class Naming(NamedTuple):
    """How names pair, in words, and the rules for images and for masks."""

    how: str
    of_image: Rule
    of_mask: Rule


BY_NAME = Naming("by name", composed, composed)


def without_words(stem: str) -> str:
    """Return a name in lower case without words such as "image" and "mask" at its ends."""
    rest, word = strip_suffix(composed(stem))
    return without_words(rest) if word else rest.lower()


BY_WORDS = Naming(
    "by their names without capitals and words like image and mask",
    without_words,
    without_words,
)


def _numbers(stem: str) -> str:
    return "-".join(str(int(number)) for number in re.findall(r"\d+", stem))


BY_NUMBERS = Naming("by the numbers in their names", _numbers, _numbers)


def match_masks(
    images: Sequence[Located], masks: Sequence[Located]
) -> tuple[list[tuple[Located, Located]], str]:
    """Pair each image with its mask; return the pairs in the images' order, and the rule that was used.

    Names are compared as they are, without capitals and words such as "image" and "mask", or without what
    all images and all masks have in common ("_manual1"), last also without the name of a split ("_test");
    the rule with most matches is used. Only if none
    finds a single pair, and the names of each side differ in nothing but numbers, these are compared.

    Raises:
        UserError: If an image has no mask, a mask has no image (names up to 5 of each), or a name occurs
            twice.
    """
    naming = best_naming(images, masks)
    image_of = _by_key(images, naming.of_image)
    mask_of = _by_key(masks, naming.of_mask)
    alone = []
    if names := _without_partner(image_of, mask_of):
        noun = plural("image", len(names))
        alone.append(f"{len(names)} {noun} without a mask: {join_first(names)}")
    if names := _without_partner(mask_of, image_of):
        noun = plural("mask", len(names))
        alone.append(f"{len(names)} {noun} without an image: {join_first(names)}")
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
        if not reduced or key not in partners:
            names.append(str(located.file))
    return names


def best_naming(images: Sequence[Located], masks: Sequence[Located]) -> Naming:
    """Return the way of comparing names by which most images find a mask, the first of equals."""
    best, most = BY_NAME, 0
    for naming in _namings(images, masks):
        count = len(matched_keys(images, masks, naming))
        if count > most:
            best, most = naming, count
        if most == min(len(images), len(masks)):
            break  # no other can find more
    if most == 0 and _differ_in_numbers(images) and _differ_in_numbers(masks):
        return BY_NUMBERS
    return best


def _namings(images: Sequence[Located], masks: Sequence[Located]) -> Iterator[Naming]:
    yield BY_NAME
    yield BY_WORDS
    yield _without_common_ends(images, masks, "what they have in common", tokens_of)
    yield _without_common_ends(
        images, masks, "what they have in common, and splits", _tokens_without_split
    )


def matched_keys(
    images: Sequence[Located], masks: Sequence[Located], naming: Naming
) -> set[Key]:
    """Return the keys that images and masks share; none if the rule gives two names of a side one key."""
    of_images = {_key(image, naming.of_image) for image in images}
    of_masks = {_key(mask, naming.of_mask) for mask in masks}
    unique = len(of_images) == len(images) and len(of_masks) == len(masks)
    if not unique and naming is not BY_NAME:
        return set()
    return {key for key in of_images & of_masks if key[2]}


def matched(
    images: Sequence[Located], masks: Sequence[Located]
) -> list[tuple[Located, Located]]:
    """Return the images that find a mask, with it."""
    naming = best_naming(images, masks)
    mask_of = {_key(mask, naming.of_mask): mask for mask in masks}
    keys = matched_keys(images, masks, naming)
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
    forms = {re.sub(r"\d+", "#", composed(located.file.stem)) for located in side}
    return len(forms) == 1 and "#" in next(iter(forms))


def _without_common_ends(
    images: Sequence[Located],
    masks: Sequence[Located],
    what: str,
    tokens_in: Callable[[str], list[str]],
) -> Naming:
    """Return a naming that drops what the names of each side begin and end with.

    Args:
        images: The images.
        masks: The masks.
        what: What is dropped, in words.
        tokens_in: Splits a name into tokens.

    `21_training` and `21_manual1` become `21`. Ends with other numbers on either side are kept: images of
    `patient1_` are no partners of masks of `patient2_`.
    """
    starts, ends = [], []
    for side in (images, masks):
        tokens = [tokens_in(located.file.stem) for located in side]
        # At least one token of each name stays.
        most = min(map(len, tokens), default=1) - 1
        start = common_start(tokens)[:most]
        reversed_rests = [each[len(start) :][::-1] for each in tokens]
        end = common_start(reversed_rests)[: most - len(start)]
        starts.append(start)
        ends.append(end[::-1])
    for sides in (starts, ends):
        of_images, of_masks = (set(filter(str.isdecimal, tokens)) for tokens in sides)
        if of_images - of_masks and of_masks - of_images:
            sides[0], sides[1] = [], []

    def rule(start: list[str], end: list[str]) -> Rule:
        def core(stem: str) -> str:
            tokens = tokens_in(stem)
            return "".join(tokens[len(start) : len(tokens) - len(end)]).strip(_BETWEEN)

        return core

    return Naming(
        f"by their names without {what}",
        rule(starts[0], ends[0]),
        rule(starts[1], ends[1]),
    )


def tokens_of(stem: str) -> list[str]:
    """Split a name into numbers, words and what separates them, in lower case."""
    return _TOKEN.findall(composed(stem).lower())


def _tokens_without_split(stem: str) -> list[str]:
    """Drop the name of a split at the end of a name: `01_test` of a folder `test` is the `01` of its mask."""
    tokens = tokens_of(stem)
    if len(tokens) > 2 and split_of(tokens[-1]):
        return tokens[:-2]
    return tokens


def common_start(names: Sequence[list[str]]) -> list[str]:
    """Return the tokens that all names begin with; none for one name, which would be all of it."""
    start: list[str] = []
    for tokens in zip(*names, strict=False):
        if len(names) == 1 or len(set(tokens)) > 1:
            break
        start.append(tokens[0])
    return start
