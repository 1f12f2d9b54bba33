"""Which mask belongs to which image, by the names of their files."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from scalestudy.data.files_in import several
from scalestudy.data.layouts.look import numbers
from scalestudy.data.layouts.names import stripped
from scalestudy.errors import UserError

Key = Callable[[str], object]
_WAYS: tuple[tuple[str, Key], ...] = (
    ("by name", lambda name: name),
    ("by their names without capitals", str.lower),
    (
        "by what is left of their names without words like image and mask",
        lambda name: stripped(name)[0].lower(),
    ),
    ("by the numbers in their names", numbers),
)


def matched(
    images: Sequence[Path], masks: Sequence[Path], name_of: Callable[[Path], str] = lambda file: file.stem
) -> tuple[list[tuple[Path, Path]], str]:
    """Each image with its mask, in the images' order, and how they were told to belong together.

    Names decide where they agree; else names without capitals; else what is left of them without words such
    as "image" and "mask"; else the numbers in them, if each folder numbers its files in one way. The way that
    matches most is taken.

    Raises:
        UserError: An image without a mask or a mask without an image (names up to 5), or two of one name.
    """
    of_image, of_mask = _by(name_of, images), _by(name_of, masks)
    words, key = max(_WAYS, key=lambda way: _matches(of_image, of_mask, way[1]))
    found = {key(name): file for name, file in of_mask.items()}
    wanted = {key(name): file for name, file in of_image.items()}
    alone = [file for name, file in wanted.items() if name not in found]
    alone += [file for name, file in found.items() if name not in wanted]
    if alone:
        raise UserError(
            "a mask of the same name for every image, and an image for every mask",
            f"{several([str(file) for file in alone])} without the other of the pair",
            "Add what is missing, or rename the files so that they pair (the extension may differ).",
        )
    pairs = [(file, found[name]) for name, file in wanted.items()]
    example = "" if (words, key) == _WAYS[0] else f" ({pairs[0][0].name} with {pairs[0][1].name})"
    return pairs, f"{words}{example}"


def _matches(images: Iterable[str], masks: Iterable[str], key: Key) -> int:
    """How many images match a mask this way; -1 where it does not tell the files of one folder apart."""
    if not (_tells(list(images), key) and _tells(list(masks), key)):
        return -1
    return len(set(map(key, images)) & set(map(key, masks)))


def _tells(names: Sequence[str], key: Key) -> bool:
    keys = set(map(key, names))
    if len(keys) < len(names):
        return False
    # Numbers alone identify files only where all are named alike: `a1` and `b2` are not of one series.
    return key is not numbers or (len({re.sub(r"\d+", "#", name) for name in names}) == 1 and () not in keys)


def _by(name_of: Callable[[Path], str], files: Sequence[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for file in files:
        name = name_of(file)
        if name in found:
            raise UserError(
                "one file for each name",
                f"{found[name]} and {file.name}",
                "Rename or remove one of the two.",
            )
        found[name] = file
    return found
