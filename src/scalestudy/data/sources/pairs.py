"""Images with one mask each, or with a mask for each object.

The names of folders give role and split: `images/` and `masks/`, `train/images/` and `train/masks/`,
`images/train/` and `masks/train/`, `train_images/` and `train_masks/`, `train/` and `train_labels/`. There
may be such folders for each image or patient (as in the Data Science Bowl 2018, J. C. Caicedo et al., Nature
Methods 16, 2019). Where names say too little, contents tell images and masks apart. Images and
masks may also be in one folder (`a.png` with `a_mask.png`), or given by patterns.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scalestudy.data.images.decode import read_pixels
from scalestudy.data.images.masks import MaskFile, ObjectMasks
from scalestudy.data.sources.files import (
    Directory,
    image_files,
    is_image_name,
    is_mask_folder,
    is_system_name,
    role,
    several,
    split_of,
    strip_suffix,
)
from scalestudy.data.sources.listing import Layout, ListedSample, Listing, Scan, refuse_several
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


Key = Callable[[str], object]
NO_MASKS = "a split without masks"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


_WAYS: tuple[tuple[str, Key], ...] = (
    ("by name", lambda name: name),
    ("by their names without capitals", str.lower),
    (
        "by what is left of their names without words like image and mask",
        lambda name: strip_suffix(name)[0].lower(),
    ),
    ("by the numbers in their names", _numbers),
)


def match_masks(
    images: Sequence[Path], masks: Sequence[Path], name_of: Callable[[Path], str] = lambda file: file.stem
) -> tuple[list[tuple[Path, Path]], str]:
    """Pair each image with its mask; return the pairs in the images' order, and the rule that was used.

    The rules are: equal names; equal names ignoring case; equal names without words such as "image" and
    "mask"; equal numbers in the names, if each folder has one numbering scheme. The rule with the most
    matches is used, the first of equals.

    Raises:
        UserError: If an image has no mask, a mask has no image (names up to 5), or a name occurs twice.
    """
    named = [_by_name(name_of, files) for files in (images, masks)]
    best, most = _WAYS[0], -1
    for way in _WAYS:
        keyed = [_by_key(way[1], file_of) for file_of in named]
        matches = len(keyed[0].keys() & keyed[1].keys())
        if matches > most:
            best, most, (image_of, mask_of) = way, matches, keyed
    alone = [
        file
        for files, partners in ((image_of, mask_of), (mask_of, image_of))
        for name, file in files.items()
        if name not in partners
    ]
    if alone:
        raise UserError(
            "a mask of the same name for every image, and an image for every mask",
            f"{several([str(file) for file in alone])} without a partner",
            "Add what is missing, or rename the files so that they pair (the extension may differ).",
        )
    pairs = [(file, mask_of[name]) for name, file in image_of.items()]
    example = "" if best is _WAYS[0] else f" ({pairs[0][0].name} with {pairs[0][1].name})"
    return pairs, f"{best[0]}{example}"


def _by_key(key: Key, file_of: dict[str, Path]) -> dict[object, Path]:
    """Return the files by the key of their names; empty if that does not tell them apart."""
    keyed = {key(name): file for name, file in file_of.items()}
    # Numbers identify files only if all names follow one pattern, unlike `a1` and `b2`.
    if key is _numbers and (len({re.sub(r"\d+", "#", name) for name in file_of}) > 1 or () in keyed):
        return {}
    return keyed if len(keyed) == len(file_of) else {}


def _by_name(name_of: Callable[[Path], str], files: Sequence[Path]) -> dict[str, Path]:
    file_of: dict[str, Path] = {}
    for file in files:
        other = file_of.setdefault(name_of(file), file)
        if other is not file:
            raise UserError(
                "one file for each name", f"{other} and {file.name}", "Rename or remove one of the two."
            )
    return file_of


def _list_pairs(scan: Scan) -> Listing:
    root = scan.root.path
    couples, tests = find_couples(scan.root)
    if not couples:
        raise UserError("a folder of images and one of masks", str(root), "Name them images/ and masks/.")
    taken = {folder.path for couple in couples.values() for folder in couple.folders}
    above = {parent for path in taken for parent in path.parents if parent.is_relative_to(root)}
    tops = {root / folder.path.relative_to(root).parts[0] for folder in tests} - above
    for folder in sorted(above):
        scan.left.add_others(folder, taken | above | tops)
    for folder in sorted(tops):
        scan.left.add(NO_MASKS, folder)
    files = {
        part: (image_files(couple.images.path, scan.left), image_files(couple.masks.path, scan.left))
        for part, couple in couples.items()
    }
    if _are_objects(files):
        return _list_objects(files)
    samples: list[ListedSample] = []
    ways = []
    for part, (images, masks) in files.items():
        pairs, how = match_masks(images, masks)
        ways.append(how)
        samples += [ListedSample(image, MaskFile(mask), part.split, part.group) for image, mask in pairs]
    if samples[0].group is not None:
        return Listing(samples, "images/ and masks/ in the folder of each group of images")
    shown = couples.get(SplitGroup("train", None)) or next(iter(couples.values()))
    names = [f"{folder.path.relative_to(root).as_posix()}/" for folder in shown.folders]
    others = " (likewise other splits)" if len(couples) > 1 else ""
    told = f" ({shown.why})" if shown.why else ""
    return Listing(samples, f"{names[0]} and {names[1]}{others}, paired {ways[0]}{told}")


FilesOfParts = dict[SplitGroup, tuple[list[Path], list[Path]]]
"""Images and masks of each split and group."""


def _are_objects(files: FilesOfParts) -> bool:
    """Whether each group has one image, and some group has other masks than one of the image's name."""
    single = all(part.group is not None and len(images) == 1 for part, (images, _) in files.items())
    return single and any(
        [mask.stem for mask in masks] != [images[0].stem] for images, masks in files.values()
    )


def _list_objects(files: FilesOfParts) -> Listing:
    samples = [
        ListedSample(images[0], ObjectMasks(tuple(masks)), part.split)
        for part, (images, masks) in files.items()
    ]
    count = sum(len(masks) for _, masks in files.values())
    return Listing(
        samples,
        f"a folder for each image with a mask of each object: {count} objects in {len(samples)} images, "
        "joined to background and foreground",
        ["background", "foreground"],
    )


PAIRS = Layout(
    name="pairs",
    words="images/ and masks/ whose files pair by name",
    list=_list_pairs,
    recognise=lambda root, _: bool(find_couples(root)[0]),
    whole=True,
)
_LEAST = 0.25
"""Minimum share of masks of other images in a folder; it is 1/2 for complete pairs."""


def _is_mask(name: str) -> bool:
    return strip_suffix(name.rpartition(".")[0])[1] == "mask"


def _holds_both(folder: Directory) -> bool:
    stems = [strip_suffix(name.rpartition(".")[0]) for name in folder.images]
    others = {rest for rest, what in stems if what != "mask"}
    count = sum(rest in others for rest, what in stems if what == "mask")
    return 0 < count >= _LEAST * len(stems)


def _recognise_suffixes(folder: Directory) -> bool:
    """Whether there are pairs in the folder itself, or in each folder inside it."""
    inside = [folder] if folder.images else list(folder.folders.values())
    return bool(inside) and all(map(_holds_both, inside))


def _list_suffixes(scan: Scan) -> Listing:
    samples: list[ListedSample] = []
    for split, part in scan.parts.items():
        nested = not part.images
        if nested:
            scan.left.add_others(part.path, [inner.path for inner in part.folders.values()])
        for folder in part.folders.values() if nested else [part]:
            files = image_files(folder.path, scan.left)
            masks = [file for file in files if _is_mask(file.name)]
            pairs, _ = match_masks([file for file in files if not _is_mask(file.name)], masks)
            group = folder.path.name if nested else None
            samples += [ListedSample(image, MaskFile(mask), split, group) for image, mask in pairs]
            example = f"{pairs[0][0].name} with {pairs[0][1].name}"
    understood = f"images and masks in one folder, as {example}"
    return Listing(samples, understood + ("; each folder is a group" if samples[0].group else ""))


SUFFIXES = Layout(
    name="suffixes",
    words="images and masks in one folder, as a.png with a_mask.png",
    list=_list_suffixes,
    recognise=lambda folder, _: _recognise_suffixes(folder),
)


def _list_patterns(scan: Scan) -> Listing:
    images, masks = (_files(scan, key) for key in ("images", "masks"))
    if both := sorted(set(images) & set(masks)):
        raise UserError(
            "patterns that tell images and masks apart",
            f"{both[0]}, which matches both",
            "Make the patterns more specific.",
        )
    unique = all(len({file.stem for file in files}) == len(files) for files in (images, masks))

    def name_of(file: Path) -> str:
        return file.stem if unique else file.relative_to(scan.root.path).with_suffix("").as_posix()

    pairs, how = match_masks(images, masks, name_of)
    samples = [ListedSample(image, MaskFile(mask)) for image, mask in pairs]
    return Listing(samples, f"images {scan.data.images} and masks {scan.data.masks}, paired {how}")


def _files(scan: Scan, key: str) -> list[Path]:
    root, pattern = scan.root.path, getattr(scan.data, key)
    if pattern is None:
        raise UserError("`images` and `masks` under [data]", f"no `{key}`", f'Add {key} = "PATTERN".')
    try:
        files = sorted(
            file
            for file in root.glob(pattern)
            if not any(map(is_system_name, file.relative_to(root).parts))
            and is_image_name(file.name)
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
    return files


PATTERNS = Layout(
    name="patterns",
    words="images and masks where patterns say",
    list=_list_patterns,
    whole=True,
    keys=("images", "masks"),
)
