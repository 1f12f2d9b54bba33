"""Which mask belongs to which image, by the names of their files."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from scalestudy.data.files_in import several
from scalestudy.data.layouts.look import numbers
from scalestudy.data.layouts.names import stripped
from scalestudy.errors import UserError

Key = Callable[[Path], object]
_WAYS: tuple[tuple[str, Key], ...] = (
    ("by name", lambda file: file.stem),
    ("by what is left of their names without words like image and mask", lambda file: stripped(file.stem)[0]),
    ("by the numbers in their names", lambda file: numbers(file.stem)),
)


def matched(images: Sequence[Path], masks: Sequence[Path]) -> tuple[list[tuple[Path, Path]], str]:
    """Each image with its mask, in the images' order, and how they were told to belong together.

    Names decide where they agree; else what is left of them without words such as "image" and "mask"; else
    the numbers in them, if each folder numbers its files in one way. The way that matches most is taken.

    Raises:
        UserError: An image without a mask or a mask without an image (names up to 5), or two of one name.
    """
    ways = [(_found(images, masks, key), words, key) for words, key in _WAYS]
    _, words, key = max(ways, key=lambda way: way[0])
    of_image, of_mask = _by(key, images), _by(key, masks)
    alone = [file for name, file in of_image.items() if name not in of_mask]
    alone += [file for name, file in of_mask.items() if name not in of_image]
    if alone:
        raise UserError(
            "a mask of the same name for every image, and an image for every mask",
            f"{several([str(file) for file in alone])} without the other of the pair",
            "Add what is missing, or rename the files so that they pair (the extension may differ).",
        )
    pairs = [(file, of_mask[name]) for name, file in of_image.items()]
    example = f" ({pairs[0][0].name} with {pairs[0][1].name})" if key is not _WAYS[0][1] else ""
    return pairs, f"{words}{example}"


def _found(images: Sequence[Path], masks: Sequence[Path], key: Key) -> int:
    """How many images match a mask this way; -1 where it does not tell the files of one folder apart."""
    if key is not _WAYS[0][1] and not (_tells(images, key) and _tells(masks, key)):
        return -1
    return len({key(file) for file in images} & {key(file) for file in masks})


def _tells(files: Sequence[Path], key: Key) -> bool:
    keys = Counter(key(file) for file in files)
    if max(keys.values(), default=0) > 1:
        return False
    # Numbers alone identify files only where all are named alike: `a1` and `b2` are not of one series.
    return key is not _WAYS[2][1] or (len({_frame(file.stem) for file in files}) == 1 and () not in keys)


def _frame(stem: str) -> str:
    """A name with its numbers taken out."""
    return re.sub(r"\d+", "#", stem)


def _by(key: Key, files: Sequence[Path]) -> dict[object, Path]:
    found: dict[object, Path] = {}
    for file in files:
        name = key(file)
        if name in found:
            raise UserError(
                "one file for each name",
                f"{found[name]} and {file.name}",
                "Rename or remove one of the two.",
            )
        found[name] = file
    return found
