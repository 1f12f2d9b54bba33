"""Ways of comparing the names of images and masks: each reduces a name to the part that its partner has too."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from scalestudy.data.sources.files import composed, split_of, strip_suffix

_TOKEN = re.compile(r"\d+|[^\W\d_]+|[\W_]+")
_BETWEEN = "-_. "

Rule = Callable[[str], str]
"""Reduces the name of a file to the part that its partner has too; "" if there is none."""


class Naming(NamedTuple):
    """How names pair, in words, and the rules for images and for masks."""

    how: str
    of_image: Rule
    of_mask: Rule


def without_words(stem: str) -> str:
    """Return a name in lower case without words such as "image" and "mask" at its ends."""
    rest, word = strip_suffix(composed(stem))
    if word:
        # Again, as `a_image_mask` has a word at its end twice.
        return without_words(rest)
    return rest.lower()


def numbers_in(stem: str) -> str:
    """Return the numbers in a name by value: `a07_2` has the numbers of `b7-2`."""
    numbers = []
    for digits in re.findall(r"\d+", stem):
        # Without the zeros in front.
        numbers.append(str(int(digits)))
    return "-".join(numbers)


def naming_without_ends(
    images: Sequence[str],
    masks: Sequence[str],
    what: str,
    tokens_in: Callable[[str], list[str]],
) -> Naming:
    """Return a naming that drops what the names of each side begin and end with.

    Args:
        images: The names of the images.
        masks: The names of the masks.
        what: What is dropped, in words.
        tokens_in: Splits a name into tokens.

    `21_training` and `21_manual1` become `21`. Ends with other numbers on either side are kept: images of
    `patient1_` are no partners of masks of `patient2_`.
    """
    image_tokens = [tokens_in(name) for name in images]
    mask_tokens = [tokens_in(name) for name in masks]
    image_start, image_end = _common_ends(image_tokens)
    mask_start, mask_end = _common_ends(mask_tokens)
    if _have_other_numbers(image_start, mask_start):
        image_start, mask_start = [], []
    if _have_other_numbers(image_end, mask_end):
        image_end, mask_end = [], []

    def rule(start: list[str], end: list[str]) -> Rule:
        def core(stem: str) -> str:
            tokens = tokens_in(stem)
            stop = len(tokens) - len(end)
            inner = tokens[len(start) : stop]
            return "".join(inner).strip(_BETWEEN)

        return core

    return Naming(
        f"by their names without {what}",
        rule(image_start, image_end),
        rule(mask_start, mask_end),
    )


def _common_ends(names: Sequence[list[str]]) -> tuple[list[str], list[str]]:
    """Return the tokens that all names begin with and end with."""
    # At least one token of each name stays.
    most = min(map(len, names), default=1) - 1
    start = common_start(names)[:most]
    reversed_rests = []
    for tokens in names:
        rest = tokens[len(start) :]
        reversed_rests.append(rest[::-1])
    most_left = most - len(start)
    end = common_start(reversed_rests)[:most_left]
    return start, end[::-1]


def _have_other_numbers(of_images: list[str], of_masks: list[str]) -> bool:
    """Whether each side has a number that the other has not."""
    image_numbers = set(filter(str.isdecimal, of_images))
    mask_numbers = set(filter(str.isdecimal, of_masks))
    only_images = image_numbers - mask_numbers
    only_masks = mask_numbers - image_numbers
    return bool(only_images) and bool(only_masks)


def tokens_of(stem: str) -> list[str]:
    """Split a name into numbers, words and what separates them, in lower case."""
    return _TOKEN.findall(composed(stem).lower())


def tokens_without_split(stem: str) -> list[str]:
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
