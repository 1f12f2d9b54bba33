"""Folders that pair by the names of their files: images and masks if their contents say so, else a doubt.

Names of folders are hints in any language, and decide only where contents do not. Only a few images are read.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from scalestudy.data.images.glance import glance, spread
from scalestudy.data.sources.classes import by_folder
from scalestudy.data.sources.files import (
    Tree,
    hint_of,
    split_in,
    strip_suffix,
)
from scalestudy.data.sources.pairing import (
    Located,
    best_naming,
    matched,
)
from scalestudy.data.sources.pairs import Pairs, pattern_of
from scalestudy.util.errors import UserError

_MOST_FOLDERS = 8
"""Maximum number of folders side by side that are compared; more are classes."""
_MOST = 0.5
"""Share of the files of the larger folder that must find a partner."""


@dataclass(frozen=True)
class PairedFolder:
    """The files in folders of one name, located without it."""

    name: str
    files: list[Located]

    @property
    def named_masks(self) -> bool:
        """Whether the name suggests masks."""
        role, _ = hint_of(self.name)
        return role == "mask"

    @property
    def paths(self) -> list[Path]:
        """Paths of the files."""
        return [located.file for located in self.files]


@dataclass(frozen=True)
class Couple:
    """Folders of two names whose files pair.

    Attributes:
        depth: Number of folders around them.
        images: The side of the images; if nothing tells, one of the two.
        masks: The other side.
        why: What tells the masks; "" if nothing does.
    """

    depth: int
    images: PairedFolder
    masks: PairedFolder
    why: str

    @property
    def names(self) -> set[str]:
        """Both names."""
        return {self.images.name, self.masks.name}


def find_couple(tree: Tree) -> Pairs | None:
    """Return images and masks of folders whose names say too little; None if no folders pair.

    Raises:
        UserError: If folders pair, but may also be classes, or pair with several others.
    """
    couples = list(_couples(tree))
    sure = [couple for couple in couples if couple.why]
    if sure:
        # Folders around or inside of these, as one for each patient, may pair by chance.
        depth = sure[0].depth
        couples = [couple for couple in couples if couple.depth == depth]
    if not couples:
        return None
    if len(couples) == 1 and sure:
        couple = couples[0]
        images = _folder_of(tree, couple.images)
        masks = _folder_of(tree, couple.masks)
        return Pairs(
            tree.root,
            couple.images.files,
            couple.masks.files,
            f"{images}/ and {masks}/ ({couple.why})",
        )
    raise _doubt(tree, sure or couples)


def _folder_of(tree: Tree, side: PairedFolder) -> str:
    last = side.paths[-1]
    return tree.relative(last).parent.as_posix()


def _couples(tree: Tree) -> Iterator[Couple]:
    """Yield the folders at each depth that pair. Folders of splits are no couple."""
    depths = map(len, tree.folders.values())
    for depth in range(max(depths, default=0)):
        sides = _sides_at(tree, depth)
        if len(sides) > _MOST_FOLDERS:
            continue
        for one, other in combinations(sides, 2):
            couple = _couple(depth, one, other)
            if couple is not None:
                yield couple


def _sides_at(tree: Tree, depth: int) -> list[PairedFolder]:
    """Return the files by the name of their folder at this depth, but for folders of splits."""
    of_name: dict[str, list[Located]] = defaultdict(list)
    for file, folders in tree.folders.items():
        if len(folders) <= depth:
            continue
        name = folders[depth]
        if split_in(name):
            continue
        others = [*folders[:depth], *folders[depth + 1 :]]
        split = ""
        shared = []
        for other in others:
            found = split_in(other)
            if not found:
                shared.append(other)
            elif not split:
                split = found
        located = Located(file, split, "/".join(shared))
        of_name[name].append(located)
    return [PairedFolder(name, files) for name, files in of_name.items()]


def _couple(depth: int, one: PairedFolder, other: PairedFolder) -> Couple | None:
    """Compare the names of the files of two sides, and the contents of a few.

    None if they do not pair, or only as the files of any two classes may.
    """
    pairs = matched(one.files, other.files)
    larger = max(len(one.files), len(other.files))
    if not pairs or len(pairs) < _MOST * larger:
        return None
    seen = _look_at(pairs)
    if seen.sizes_differ:
        return None  # no mask is larger or smaller than its image
    images, masks = one, other
    if one.named_masks and not other.named_masks:
        images, masks = other, one
    name_tells = masks.named_masks and not images.named_masks
    equal_by_chance = not _tell_more_than_numbers(pairs)
    why = ""
    if seen.one_few != seen.other_few:
        many, few = one, other
        if seen.one_few:
            many, few = other, one
        # Where name and contents contradict each other, neither decides: the user is asked.
        contradicted = name_tells and masks is not few
        if not contradicted:
            images, masks = many, few
            why = f"{few.name}/ has few values"
    # Files 1, 2, 3 pair in the folders of any two classes. Grey partners may be more, as maps of depths are.
    elif equal_by_chance and not seen.one_grey:
        return None
    elif name_tells and seen.one_few:
        why = f"{masks.name}/ is named like masks"
    return Couple(depth, images, masks, why)


@dataclass(frozen=True)
class _Seen:
    """What a few pairs look like.

    Attributes:
        sizes_differ: Whether some pair differs in size.
        one_few: Whether all images of one side have few values.
        other_few: The same of the other side.
        one_grey: Whether one image of each pair is grey, always on the same side, as a map of depths is.
    """

    sizes_differ: bool
    one_few: bool
    other_few: bool
    one_grey: bool


def _look_at(pairs: list[tuple[Located, Located]]) -> _Seen:
    """Decode a few pairs. Of what cannot be read, nothing speaks against few values."""
    differ = False
    one_few = True
    other_few = True
    greys = set()
    for one, other in spread(pairs):
        seen = glance(one.file)
        partner = glance(other.file)
        if seen is None or partner is None:
            continue
        if seen.size != partner.size:
            differ = True
        if not seen.few:
            one_few = False
        if not partner.few:
            other_few = False
        greys.add((seen.grey, partner.grey))
    one_grey = greys in ({(True, False)}, {(False, True)})
    return _Seen(differ, one_few, other_few, one_grey)


def _tell_more_than_numbers(pairs: list[tuple[Located, Located]]) -> bool:
    """Whether equal names are no chance: not `1`, `2`, `3`, which the files of any two classes may have."""
    for pair in pairs:
        for located in pair:
            _, role = strip_suffix(located.file.stem)
            if role == "mask":
                return True
    one = [located for located, _ in pairs]
    other = [partner for _, partner in pairs]
    naming = best_naming(one, other)
    # Numbers begin again in each folder.
    names_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for located in one:
        place = located.split, located.folder
        name = naming.of_image(located.file.stem)
        names_of[place].append(name)
    return not all(map(_are_counted, names_of.values()))


def _are_counted(names: list[str]) -> bool:
    """Whether names differ in one number alone, which runs without large gaps."""
    forms = set()
    values = []
    for name in names:
        numbers = re.findall(r"\d+", name)
        if len(numbers) != 1:
            return False
        (number,) = numbers
        forms.add(name.replace(number, "#"))
        values.append(int(number))
    if len(forms) != 1:
        return False
    return max(values) - min(values) < 2 * len(values)


def _doubt(tree: Tree, couples: list[Couple]) -> UserError:
    """Return the error for folders with several readings: the two most likely ones, and the keys of each."""
    readings = []
    names: dict[str, None] = {}
    for couple in couples:
        images = pattern_of(tree.root, couple.images.paths)
        masks = pattern_of(tree.root, couple.masks.paths)
        readings.append(f'images with masks: images = "{images}" and masks = "{masks}"')
        for name in sorted(couple.names):
            names[f"{name}/"] = None
    readings = readings[:2]
    if len(readings) < 2:
        readings.append(f"a class for each folder: {by_folder(tree)}")
    shown = " and ".join(names)
    keys = "; or ".join(readings)
    return UserError(
        "a folder with one possible reading",
        f"{tree}, in which the files of {shown} have the same names",
        f"Say under [data] which it is: {keys}.",
    )
