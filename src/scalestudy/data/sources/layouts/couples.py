"""Find folders of images and the folders of their masks, by names, else by contents."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from scalestudy.data.images.decode import read_pixels
from scalestudy.data.sources.files import Directory, is_mask_folder, role, several, split_of
from scalestudy.data.sources.layouts.base import refuse_several
from scalestudy.util.errors import UserError

USUAL = {"images": "image", "masks": "mask"}


class SplitGroup(NamedTuple):
    """The split and the group of folders of images and masks."""

    split: str
    group: str | None


class Couple(NamedTuple):
    """A folder of images, the folder of their masks, and a reason if their names give none."""

    images: Directory
    masks: Directory
    why: str = ""

    @property
    def folders(self) -> tuple[Directory, Directory]:
        """Both folders."""
        return self.images, self.masks


@dataclass
class Folders:
    """The folders of images below a root by split, group and role, and the couples among them."""

    root: Directory
    of_part: dict[SplitGroup, dict[str, list[Directory]]] = field(default_factory=dict)

    def add(self, folder: Directory, what: str | None, part: SplitGroup, *, empty: bool) -> None:
        """Add the folders inside `folder` recursively, as long as names give a split, a group or a role."""
        for name, inner in folder.folders.items():
            inner_what, split = role(name)
            # Each of split, group and role occurs once; a role may repeat with a split (images/train_images).
            again = inner_what and what and not (split and inner_what == what)
            unknown = not inner_what and not split
            if again or (split and part.split) or (unknown and (part.group is not None or what)):
                continue
            inside = SplitGroup(part.split or split or "", name if unknown else part.group)
            holds = inner_what or what
            if inner.images or (empty and name.lower() in USUAL):
                self.of_part.setdefault(inside, {}).setdefault(holds or "", []).append(inner)
            self.add(inner, holds, inside, empty=empty)

    def couples(self, *, grouped: bool) -> dict[SplitGroup, Couple]:
        """Return the couples of images and masks, either those in groups or those without.

        Raises:
            UserError: If there are two folders of images or of masks.
        """
        couples = {}
        for part, folders in self.of_part.items():
            images = folders.get("image") or ([] if grouped else folders.get("", []))
            masks = folders.get("mask", [])
            if images and masks and grouped is (part.group is not None):
                couples[part] = Couple(self._one(images, "image"), self._one(masks, "mask"))
        return couples

    def _one(self, folders: list[Directory], what: str) -> Directory:
        usual = [folder for folder in folders if USUAL.get(folder.path.name.lower()) == what] or folders
        action = 'Merge them, or say which: `images = "FOLDER/*"` and `masks = "FOLDER/*"` under [data].'
        refuse_several(usual, f"the {what}s", self.root, action)
        return usual[0]


def find_couples(root: Directory) -> tuple[dict[SplitGroup, Couple], list[Directory]]:
    """Return folders of images with their folders of masks, and folders of test images without masks.

    Raises:
        UserError: If there are two folders for one purpose, or some are missing.
    """
    for empty in (False, True):  # images/ beside an empty masks/ is a mistake to report
        folders = Folders(root)
        folders.add(root, None, SplitGroup("", None), empty=empty)
        plain = folders.couples(grouped=False)
        if SplitGroup("train", None) in plain:
            return _of_splits(folders, {part: couple for part, couple in plain.items() if part.split})
        # If there are also folders of splits, only images/ and masks/ themselves count as the set.
        divided = any(map(split_of, root.folders)) and "images" not in map(str.lower, root.folders)
        if SplitGroup("", None) in plain and not divided:
            return {SplitGroup("", None): plain[SplitGroup("", None)]}, []
        grouped = folders.couples(grouped=True)
        groups = [part for part in folders.of_part if part.group is not None and part.split != "test"]
        if grouped and 2 * len(grouped) > len(groups):
            return _of_splits(folders, grouped)
    return _unusual_couples(root)


def _of_splits(
    folders: Folders, couples: dict[SplitGroup, Couple]
) -> tuple[dict[SplitGroup, Couple], list[Directory]]:
    """Return the couples, and the folders of a test set without masks; refuse other incomplete couples."""
    splits = {part.split for part in couples}
    grouped = any(part.group is not None for part in couples)
    alone = [
        (part.split, folders_of_role[0])
        for part, by_role in folders.of_part.items()
        for folders_of_role in by_role.values()
        if part not in couples
        and (part.split not in (*splits, "") or (grouped and part.group is not None and part.split in splits))
    ]
    tests = [folder for split, folder in alone if split == "test" and "test" not in splits]
    missing = [folder.path for _, folder in alone if folder not in tests]
    if missing:
        if grouped:
            missing = [path.parent if role(path.name)[0] else path for path in missing]
        raise UserError(
            "a folder of images and one of masks "
            + ("in the folder of every image" if grouped else "in every split, the same layout in each"),
            f"{several([f'{path}/' for path in dict.fromkeys(missing)])} without the other",
            "Add what is missing, or move these folders out of the data set.",
        )
    return couples, tests


def _unusual_couples(root: Directory) -> tuple[dict[SplitGroup, Couple], list[Directory]]:
    """Return couples with unusual names in each split, and folders of test images without masks."""
    splits = {split: folder for name, folder in root.folders.items() if (split := split_of(name))}
    parts = splits or {"": root}
    if splits and "train" not in splits:
        return {}, []
    couples = {split: _unusual_couple(folder) for split, folder in parts.items()}
    found = {SplitGroup(split, None): couple for split, couple in couples.items() if couple}
    alone = [parts[split] for split, couple in couples.items() if not couple]
    if not splits or alone == [splits.get("test")]:
        return found, alone if found else []
    return ({}, []) if alone else (found, [])


def _unusual_couple(folder: Directory) -> Couple | None:
    """Return the only folder of masks in a folder, by its name or by its few values, and that of its images.

    Raises:
        UserError: If several folders may hold the images.
    """
    folders = [inner for inner in folder.folders.values() if inner.images]
    masks = [inner for inner in folders if is_mask_folder(inner.path.name)]
    others = [inner for inner in folders if inner not in masks]
    if len(masks) == 1 and not any("mask" in other.path.name.lower() for other in others):
        alike = [other for other in others if _stems(other) == _stems(masks[0])]
        return _couple(alike or (others if len(others) == 1 else []), masks[0])
    for names in {_stems(inner): None for inner in folders}:
        same = [inner for inner in folders if _stems(inner) == names]
        try:
            few = [inner for inner in same if len(same) > 1 and 2 <= _most_values(inner) <= _FEW]
        except UserError:
            continue  # a damaged file, which reading the set refuses by name
        if len(few) == 1:
            why = f"{few[0].path.name}/ has few values"
            return _couple([inner for inner in same if inner not in few], few[0], why)
    return None


def _stems(folder: Directory) -> frozenset[str]:
    return frozenset(name.rpartition(".")[0].lower() for name in folder.images)


def _couple(images: Sequence[Directory], masks: Directory, why: str = "") -> Couple | None:
    if len(images) > 1:
        raise UserError(
            f"one folder of images for the masks in {masks.path}/",
            f"{' and '.join(f'{folder.path.name}/' for folder in images)} with the same file names",
            f"Name one under [data]: {patterns(images[0], masks)}.",
        )
    return Couple(images[0], masks, why) if images else None


def patterns(images: Directory, masks: Directory) -> str:
    """Return the lines of [data] that make these folders images and masks."""
    return f'`images = "{images.path.name}/*"` and `masks = "{masks.path.name}/*"`'


_FEW = 32
"""Maximum number of values of a mask; public sets have up to about 30 classes."""


def _most_values(folder: Directory) -> int:
    """Return the largest number of values of a channel in the first, middle and last image of a folder."""
    tried = {folder.images[0], folder.images[len(folder.images) // 2], folder.images[-1]}
    pixels = (read_pixels(folder.path / name).values for name in tried)
    return max(len(np.unique(image[..., channel])) for image in pixels for channel in range(image.shape[-1]))
