"""The words in names of folders and files that say image, mask or split, and the folders of splits."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from scalestudy.data.sources.files import is_system, is_system_name
from scalestudy.data.sources.left_out import BESIDE, SYSTEM, Leftovers
from scalestudy.util.errors import UserError

SPLITS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
_SPLIT_FOLDER = re.compile(r"(stage\d_)?(?P<split>[a-z]+?)([-_]?(set|data)|[-_]?20\d\d)?")
LAYOUTS = (
    "images/ and masks/ whose files pair by name, or one folder of images for each class (either of them, if "
    "you like, inside train/, val/ and test/), or another of the layouts in docs/data.md"
)


def parts(root: Path) -> dict[str, Path]:
    """Folders of the splits by name ("train" first), or `{"": root}` for a folder without splits.

    Raises:
        UserError: two folders for one split, or no training folder beside the others.
    """
    folders: dict[str, Path] = {}
    for split in SPLITS:
        folder = _one(root, split_of, split, f"the {split} samples")
        if folder is not None:
            folders[split] = folder
    if not folders or named(root, ("images",), "the images") is not None:
        return {"": root}
    if "train" not in folders:
        raise UserError(
            "a folder train/ beside the other splits",
            f"only {', '.join(f'{folder.name}/' for folder in folders.values())} in {root}",
            "Add train/, or put the samples into one folder without splits.",
        )
    return folders


def subfolders(folder: Path) -> list[Path]:
    """Folders inside `folder` that are not hidden, by name (numbers in their own order)."""
    with os.scandir(folder) as entries:
        folders = [Path(item.path) for item in entries if item.is_dir() and not is_system_name(item.name)]
    return sorted(folders, key=lambda entry: in_order(entry.name))


def named(folder: Path, names: Iterable[str], what: str) -> Path | None:
    """The folder inside `folder` that has one of these names, in capitals or not; None without one.

    Raises:
        UserError: there are two; `what` says what they would hold.
    """
    wanted = set(names)
    return _one(folder, lambda name: name.lower() in wanted, True, what)


def split_of(folder: str) -> str | None:
    """The split that a folder is by its name: "train" of `train`, `Training`, `train2017`, `stage1_train`."""
    match = _SPLIT_FOLDER.fullmatch(folder.lower())
    return next((split for split, names in SPLITS.items() if match and match["split"] in names), None)


def _one(folder: Path, of: Callable[[str], object], wanted: object, what: str) -> Path | None:
    folders = [entry for entry in subfolders(folder) if of(entry.name) == wanted]
    if len(folders) > 1:
        raise UserError(
            f"one folder for {what}",
            f"{' and '.join(f'{entry.name}/' for entry in folders)} in {folder}",
            "Merge them, or move one away.",
        )
    return folders[0] if folders else None


def leave_others(folder: Path, taken: Iterable[Path], left: Leftovers) -> None:
    """Leave out whatever lies in `folder` beside what is taken."""
    known = set(taken)
    for entry in sorted(folder.iterdir()):
        if entry not in known:
            left.add(SYSTEM if is_system(entry) else BESIDE, entry)


def in_order(name: str) -> tuple[bool, int, str]:
    """Key that sorts names, those that are numbers by their value and first."""
    number = int(name) if name.isdecimal() else 0
    return (not name.isdecimal(), number, name)


IMAGE = frozenset((
    "image", "images", "img", "imgs", "photo", "photos", "picture", "pictures", "raw", "input", "inputs", "x",
    "original", "originals", "scan", "scans",
))  # fmt: skip
MASK = frozenset((
    "mask", "masks", "label", "labels", "lab", "labs", "gt", "groundtruth", "truth", "annotation",
    "annotations", "annot", "annots", "anno", "target", "targets", "y", "seg", "segs", "segmentation",
    "segmentations", "segmentationclass", "manual",
))  # fmt: skip
_FILLING = frozenset((
    "ground", "jpeg", "jpg", "png", "tif", "tiff", "files", "left", "bit", "class", "fine", "the", "of",
))  # fmt: skip
_SPLIT_OF = {word: split for split, words in SPLITS.items() for word in words}
_TOKEN = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def words(name: str) -> list[str]:
    """The words and numbers that a name is made of, in small letters: "trainMasks_2" -> train, masks, 2."""
    return [token.lower() for token in _TOKEN.findall(name)]


def role(name: str) -> tuple[str | None, str | None]:
    """What a folder holds by its name ("image" or "mask"), and of which split; None for what it does not say.

    A name with any other word says nothing.
    """
    tokens = [word for word in words(name) if word not in _FILLING and not word.isdecimal()]
    if not tokens or not all(word in IMAGE or word in MASK or word in _SPLIT_OF for word in tokens):
        return None, None
    splits = {_SPLIT_OF[word] for word in tokens if word in _SPLIT_OF}
    if len(splits) > 1:
        return None, None
    what = "mask" if MASK & set(tokens) else "image" if IMAGE & set(tokens) else None
    return what, splits.pop() if splits else None


def split_in(name: str) -> str | None:
    """The split that a name says: "train" of `Training`, `train2017`, `stage1_train`, `train_labels`."""
    splits = {_SPLIT_OF[word] for word in words(name) if word in _SPLIT_OF}
    return splits.pop() if len(splits) == 1 else None


def stripped(stem: str) -> tuple[str, str | None]:
    """A file's name without the word for image or mask at its end or beginning, and what that word says.

    "a_mask" -> ("a", "mask"); "img12" -> ("12", "image"); "mask" -> ("mask", None).
    """
    for pattern in (_AT_END, _AT_START):
        match = pattern.fullmatch(stem)
        if match:
            return match["rest"], "mask" if match["word"].lower() in MASK else "image"
    return stem, None


_SINGLE_LETTERS = {"x", "y"}
_WORDS = "|".join(sorted((IMAGE | MASK) - _SINGLE_LETTERS, key=len, reverse=True))
_AT_END = re.compile(rf"(?P<rest>.+?)[-_. ]+(?:ground[-_]?)?(?P<word>{_WORDS})", re.IGNORECASE)
_AT_START = re.compile(rf"(?P<word>{_WORDS})(?:[-_. ]+|(?=\d))(?P<rest>.+)", re.IGNORECASE)
