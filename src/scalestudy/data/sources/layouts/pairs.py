"""Images with one mask each, or with a mask for each object.

The names of folders give role and split: `images/` and `masks/`, `train/images/` and `train/masks/`,
`images/train/` and `masks/train/`, `train_images/` and `train_masks/`, `train/` and `train_labels/`. There
may be such folders for each image or patient (as in the Data Science Bowl 2018, J. C. Caicedo et al., Nature
Methods 16, 2019). Where names say too little, contents tell images and masks apart (`couples.py`). Images and
masks may also be in one folder (`a.png` with `a_mask.png`), or given by patterns.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from scalestudy.data.images.masks import MaskFile, ObjectMasks
from scalestudy.data.sources.files import (
    Directory,
    image_files,
    is_image_name,
    is_system_name,
    several,
    stripped,
)
from scalestudy.data.sources.layouts.base import Layout, ListedSample, Listing, Scan
from scalestudy.data.sources.layouts.couples import SplitGroup, find_couples
from scalestudy.util.errors import UserError

Key = Callable[[str], object]
NO_MASKS = "a split without masks"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


_WAYS: tuple[tuple[str, Key], ...] = (
    ("by name", lambda name: name),
    ("by their names without capitals", str.lower),
    (
        "by what is left of their names without words like image and mask",
        lambda name: stripped(name)[0].lower(),
    ),
    ("by the numbers in their names", _numbers),
)


def matched(
    images: Sequence[Path], masks: Sequence[Path], name_of: Callable[[Path], str] = lambda file: file.stem
) -> tuple[list[tuple[Path, Path]], str]:
    """Pair each image with its mask; return the pairs in the images' order, and the rule that was used.

    The rules are: equal names; equal names ignoring case; equal names without words such as "image" and
    "mask"; equal numbers in the names, if each folder has one numbering scheme. The rule with the most
    matches is used, the first of equals.

    Raises:
        UserError: If an image has no mask, a mask has no image (names up to 5), or a name occurs twice.
    """
    named_images, named_masks = _by_name(name_of, images), _by_name(name_of, masks)
    how, key = max(_WAYS, key=lambda way: _matches(named_images, named_masks, way[1]))
    mask_of = {key(name): file for name, file in named_masks.items()}
    image_of = {key(name): file for name, file in named_images.items()}
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
    example = "" if key is _WAYS[0][1] else f" ({pairs[0][0].name} with {pairs[0][1].name})"
    return pairs, f"{how}{example}"


def _matches(images: Iterable[str], masks: Iterable[str], key: Key) -> int:
    """Return how many images match a mask by this key; -1 if keys are not unique in a folder."""
    if not (_tells_apart(list(images), key) and _tells_apart(list(masks), key)):
        return -1
    return len(set(map(key, images)) & set(map(key, masks)))


def _tells_apart(names: Sequence[str], key: Key) -> bool:
    keys = set(map(key, names))
    if len(keys) < len(names):
        return False
    # Numbers identify files only if all names follow one pattern, unlike `a1` and `b2`.
    return key is not _numbers or (len({re.sub(r"\d+", "#", name) for name in names}) == 1 and () not in keys)


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
        pairs, how = matched(images, masks)
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
    return stripped(name.rpartition(".")[0])[1] == "mask"


def _holds_both(folder: Directory) -> bool:
    stems = [stripped(name.rpartition(".")[0]) for name in folder.images]
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
            pairs, _ = matched([file for file in files if not _is_mask(file.name)], masks)
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

    pairs, how = matched(images, masks, name_of)
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
