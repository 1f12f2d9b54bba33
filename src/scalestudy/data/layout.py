"""What layouts of folders share: the folders of splits, and what lies beside the samples."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from scalestudy.data.files_in import is_system, is_system_name
from scalestudy.data.left_out import BESIDE, SYSTEM, Leftovers
from scalestudy.errors import UserError

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
    found: dict[str, Path] = {}
    for split in SPLITS:
        folder = _one(root, split_of, split, f"the {split} samples")
        if folder is not None:
            found[split] = folder
    if not found or named(root, ("images",), "the images") is not None:
        return {"": root}
    if "train" not in found:
        raise UserError(
            "a folder train/ beside the other splits",
            f"only {', '.join(f'{folder.name}/' for folder in found.values())} in {root}",
            "Add train/, or put the samples into one folder without splits.",
        )
    return found


def subfolders(folder: Path) -> list[Path]:
    """Folders inside `folder` that are not hidden, by name (numbers in their own order)."""
    with os.scandir(folder) as entries:
        found = [Path(each.path) for each in entries if each.is_dir() and not is_system_name(each.name)]
    return sorted(found, key=lambda entry: in_order(entry.name))


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
    found = [entry for entry in subfolders(folder) if of(entry.name) == wanted]
    if len(found) > 1:
        raise UserError(
            f"one folder for {what}",
            f"{' and '.join(f'{entry.name}/' for entry in found)} in {folder}",
            "Merge them, or move one away.",
        )
    return found[0] if found else None


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
