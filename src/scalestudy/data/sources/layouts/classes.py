"""Images with the class in the folder name, or in the file name (`label_pattern` under [data])."""

import re

from scalestudy.data.sources.files import (
    Directory,
    image_files,
    images_below,
    is_mask_folder,
    role,
    several,
    without_images,
)
from scalestudy.data.sources.layouts.base import Layout, ListedSample, Listing, Scan
from scalestudy.data.sources.layouts.couples import USUAL, patterns
from scalestudy.util.errors import UserError

NO_CLASS = "without a class in their names"


def _holds_classes(folder: Directory) -> bool:
    # images/ or masks/ means an incomplete pair of folders, not classes.
    if USUAL.keys() & map(str.lower, folder.folders):
        return False
    return any(inner.images for inner in folder.folders.values())


def plausible(scan: Scan) -> bool:
    """Whether there are two or more folders of images that may be classes although there is a table."""
    return any(
        sum(bool(folder.images) and role(name) == (None, None) for name, folder in part.folders.items()) > 1
        for part in scan.parts.values()
    )


def _of_classes(part: Directory) -> dict[str, Directory]:
    """Return folders by class. Folders named like masks are not classes unless another name has "mask"."""
    classes = {name: folder for name, folder in part.folders.items() if not is_mask_folder(name)}
    return part.folders if not classes or any("mask" in name.lower() for name in classes) else classes


def _list_classes(scan: Scan) -> Listing:
    samples: list[ListedSample] = []
    for split, part in scan.parts.items():
        folders = _of_classes(part)
        if bare := [folder for folder in folders.values() if not (folder.images or folder.folders)]:
            raise without_images(bare)
        scan.left.add_others(part.path, [folder.path for folder in folders.values()])
        for name, folder in folders.items():
            samples += [ListedSample(image, name, split) for image in image_files(folder.path, scan.left)]
    first = _of_classes(next(iter(scan.parts.values())))
    return Listing(samples, f"{CLASSES.words}{_other_reading(list(first.values()))}", list(first))


def _other_reading(folders: list[Directory]) -> str:
    """Say how two folders with the same file names become images and masks."""
    stems = [{name.rpartition(".")[0] for name in folder.images} for folder in folders]
    if len(folders) != 2 or stems[0] != stems[1]:
        return ""
    return f" (if these are images and their masks: {patterns(*folders)} under [data])"


CLASSES = Layout(
    name="classes",
    words="one folder of images for each class",
    list=_list_classes,
    recognise=lambda folder, _: _holds_classes(folder),
)


def _list_labels(scan: Scan) -> Listing:
    pattern = re.compile(scan.data.label_pattern or "")
    samples: list[ListedSample] = []
    nameless: list[str] = []
    for split, part in scan.parts.items():
        for file in images_below(part.path):
            name = file.relative_to(part.path).as_posix()
            match = pattern.search(name)
            label = match and (match[1] if pattern.groups else match[0])
            if label is not None:
                samples.append(ListedSample(file, label, split))
            elif split in ("", "train"):
                nameless.append(name)
            else:
                scan.left.add(NO_CLASS, file)
    if nameless or not samples:
        raise UserError(
            f"a class in the name of every image, as label_pattern = {pattern.pattern!r} finds it",
            f"{several(nameless) or 'no images'} in {scan.root.path}",
            "Correct the pattern (its first group is the class), or move these files away.",
        )
    return Listing(samples, f"classes in the files' names, as label_pattern = {pattern.pattern!r} finds them")


LABELS = Layout(
    name="labels", words="images whose names hold their classes", list=_list_labels, keys=("label_pattern",)
)
