"""Folders that pair by the names of their files: images and masks if their contents say so, else a doubt.

Names of folders are hints in any language, and decide only where contents do not. Only a few images are read.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from scalestudy.data.images.glance import glance, spread
from scalestudy.data.sources.classes import by_folder
from scalestudy.data.sources.files import Tree, hint_of, split_in, strip_suffix
from scalestudy.data.sources.pairing import Located, best_naming, matched
from scalestudy.data.sources.pairs import Pairs, pattern_of
from scalestudy.util.errors import UserError

_MOST_FOLDERS = 8
"""Maximum number of folders side by side that are compared; more are classes."""
_MOST = 0.5
"""Share of the files of the smaller folder that must find a partner."""


class Couple(NamedTuple):
    """Two folders, or folders of two names, whose files pair.

    Attributes:
        names: Their names.
        sides: Their files, without the folder of this name.
        masks: 0 or 1 for the side that is masks; None if nothing tells.
        doubtful: Whether something speaks against a class for each folder.
        why: What tells the masks.
    """

    names: tuple[str, str]
    sides: tuple[list[Located], list[Located]]
    masks: int | None
    doubtful: bool
    why: str


def find_couple(tree: Tree) -> Pairs | None:
    """Return images and masks of folders whose names say nothing; None if no folders pair.

    Raises:
        UserError: If folders pair, but may also be classes.
    """
    couples = [couple for couple in _couples(tree) if couple.masks is not None or couple.doubtful]
    if not couples:
        return None
    sure = [couple for couple in couples if couple.masks is not None]
    names = {name for couple in couples for name in couple.names}
    if len(sure) == 1 and names == set(sure[0].names):
        couple = sure[0]
        images, masks = couple.sides if couple.masks == 1 else couple.sides[::-1]
        shown = [tree.relative(side[-1].file).parent.as_posix() for side in (images, masks)]
        why = f" ({couple.why})" if couple.why else ""
        return Pairs(tree.root, images, masks, f"{shown[0]}/ and {shown[1]}/{why}")
    raise _doubt(tree, sure or couples)


def _couples(tree: Tree) -> Iterator[Couple]:
    """Yield the folders at each depth that pair. Folders of splits are no couple."""
    parts_of = {file: tree.relative(file).parts[:-1] for file in tree.images}
    deepest = max(map(len, parts_of.values()), default=0)
    for depth in range(deepest):
        of_name: dict[str, list[Located]] = defaultdict(list)
        for file, parts in parts_of.items():
            if len(parts) > depth:
                others = parts[:depth] + parts[depth + 1 :]
                splits = [split for name in others if (split := split_in(name))]
                folder = "/".join(name for name in others if not split_in(name))
                of_name[parts[depth]].append(Located(file, splits[0] if splits else "", folder))
        names = [name for name in of_name if not (split_in(name))]
        if len(names) > _MOST_FOLDERS:
            continue
        for one, other in combinations(names, 2):
            couple = _couple((one, other), (of_name[one], of_name[other]))
            if couple is not None:
                yield couple


def _couple(names: tuple[str, str], sides: tuple[list[Located], list[Located]]) -> Couple | None:
    """Compare the names of the files of two folders, and the contents of a few; None if they do not pair."""
    pairs = matched(*sides)
    if len(pairs) < max(1, _MOST * min(map(len, sides))):
        return None
    seen = [(glance(one.file), glance(other.file)) for one, other in spread(pairs)]
    readable = [(one, other) for one, other in seen if one and other]
    if any(one.size != other.size for one, other in readable):
        return None  # no mask is larger or smaller than its image
    few = [all(each[side].few for each in readable) for side in (0, 1)]
    named_masks = [hint_of(name)[0] == "mask" for name in names]
    telling = _tell_more_than_numbers(*sides)
    if readable and few.count(True) == 1:
        masks = few.index(True)
        contradicted = named_masks[1 - masks] and not named_masks[masks]
        return Couple(names, sides, None if contradicted else masks, True, f"{names[masks]}/ has few values")
    if all(few) and telling and named_masks.count(True) == 1:
        masks = named_masks.index(True)
        return Couple(names, sides, masks, True, f"{names[masks]}/ is named like masks")
    return Couple(names, sides, None, telling, "")


def _tell_more_than_numbers(one: list[Located], other: list[Located]) -> bool:
    """Whether equal names are no chance: not `1`, `2`, `3`, which the files of any two classes may have."""
    naming = best_naming(one, other)
    if any(strip_suffix(located.file.stem)[1] == "mask" for located in (*one, *other)):
        return True
    names_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for located in one:
        names_of[located.split, located.folder].append(naming.of_image(located.file.stem))
    return not all(map(_are_counted, names_of.values()))


def _are_counted(names: list[str]) -> bool:
    """Whether names differ in one number alone, which runs without large gaps."""
    numbers = [re.findall(r"\d+", name) for name in names]
    if len({re.sub(r"\d+", "#", name) for name in names}) > 1 or any(len(each) != 1 for each in numbers):
        return False
    values = [int(each[0]) for each in numbers]
    return max(values) - min(values) < 2 * len(values)


def _doubt(tree: Tree, couples: list[Couple]) -> UserError:
    """Return the error for folders with several readings: the two most likely ones, and the keys of each."""
    readings = []
    for couple in couples[:2]:
        files = [[located.file for located in side] for side in couple.sides]
        if couple.masks == 0 or (couple.masks is None and hint_of(couple.names[0])[0] == "mask"):
            files.reverse()
        images, masks = (pattern_of(tree.root, side) for side in files)
        readings.append(f'images with masks: images = "{images}" and masks = "{masks}"')
    readings.append(f"a class for each folder: {by_folder(tree)}")
    names = dict.fromkeys(f"{name}/" for couple in couples for name in couple.names)
    shown = " and ".join(names)
    return UserError(
        "a folder with one possible reading",
        f"{tree}, in which the files of {shown} have the same names",
        f"Say under [data] which it is: {'; or '.join(readings[:2])}.",
    )
