"""The two layouts of a folder of images."""

from collections.abc import Iterable
from pathlib import Path

from scalestudy.data.files_in import is_image_name, is_system, shown_entries
from scalestudy.data.kinds import Kind
from scalestudy.data.left_out import BESIDE, SYSTEM, Leftovers
from scalestudy.errors import UserError

SPLITS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
LAYOUTS = (
    "images/ and masks/ whose files pair by name, or one folder of images for each class "
    "(either of them, if you like, inside train/, val/ and test/)"
)


def parts(root: Path) -> dict[str, Path]:
    """Folders of the splits by name ("train" first), or `{"": root}` for a folder without splits.

    Raises:
        UserError: two folders for one split, or no training folder beside the others.
    """
    found: dict[str, Path] = {}
    for split, names in SPLITS.items():
        folder = named(root, names, f"the {split} samples")
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


def kind_of(root: Path) -> Kind:
    """What a folder holds: images with masks, or a folder for each class.

    Raises:
        UserError: the folder is empty, or has neither layout; says what was found.
    """
    verdicts = {part: _kind_of_part(folder) for part, folder in parts(root).items()}
    kinds = set(verdicts.values())
    if len(kinds) > 1:
        raise UserError(
            "the same layout in every split",
            f"images and masks in some and folders of classes in others under {root}",
            "Give every split the layout of train/.",
        )
    return kinds.pop()


def subfolders(folder: Path) -> list[Path]:
    """Folders inside `folder` that are not hidden, by name (numbers in their own order)."""
    found = [entry for entry in folder.iterdir() if not is_system(entry) and entry.is_dir()]
    return sorted(found, key=_order)


def named(folder: Path, names: Iterable[str], what: str) -> Path | None:
    """The folder inside `folder` that has one of these names, in capitals or not; None without one.

    Raises:
        UserError: there are two; `what` says what they would hold.
    """
    wanted = set(names)
    found = [entry for entry in subfolders(folder) if entry.name.lower() in wanted]
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


def _kind_of_part(folder: Path) -> Kind:
    inside = subfolders(folder)
    names = {entry.name.lower() for entry in inside} & {"images", "masks"}
    if names == {"images", "masks"}:
        return "masks"
    # Of a folder with one of the two the other is missing: its folders are no classes.
    if names or not any(_holds_images(entry) for entry in inside):
        raise UserError(
            f"a folder with {LAYOUTS}",
            f"{folder}, which holds {shown_entries(folder)}",
            "Arrange the files in one of these ways, or name another folder as the source.",
        )
    return "classes"


def _holds_images(folder: Path) -> bool:
    return any(is_image_name(entry.name) for entry in folder.iterdir())


def _order(entry: Path) -> tuple[bool, int, str]:
    number = int(entry.name) if entry.name.isdecimal() else 0
    return (not entry.name.isdecimal(), number, entry.name)
