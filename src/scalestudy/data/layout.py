"""The two layouts of a folder of images, and the files in them."""

from pathlib import Path

from scalestudy.data.images import OTHER_SUFFIXES, SUFFIXES
from scalestudy.data.kinds import Kind
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
    folders = {folder.name.lower(): folder for folder in subfolders(root)}
    found: dict[str, Path] = {}
    for split, names in SPLITS.items():
        named = [folders[name] for name in names if name in folders]
        if len(named) > 1:
            raise UserError(
                f"one folder for the {split} samples",
                f"{named[0].name}/ and {named[1].name}/ in {root}",
                "Merge them, or move one away.",
            )
        if named:
            found[split] = named[0]
    if not found or "images" in folders:
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
    """Visible folders inside `folder`, by name (numbers in their own order)."""
    found = [entry for entry in folder.iterdir() if entry.is_dir() and not _hidden(entry)]
    return sorted(found, key=_order)


def image_files(folder: Path) -> list[Path]:
    """Image files directly inside `folder`, by name.

    Raises:
        UserError: the folder is empty, or holds images of a format that is not read.
    """
    entries = sorted(entry for entry in folder.iterdir() if not _hidden(entry))
    files = [entry for entry in entries if entry.suffix.lower() in SUFFIXES and entry.is_file()]
    foreign = [entry for entry in entries if entry.suffix.lower() in OTHER_SUFFIXES]
    if foreign:
        raise UserError(
            "images as PNG, JPEG or TIFF files",
            f"{foreign[0]}" + (f" and {len(foreign) - 1} more such files" if len(foreign) > 1 else ""),
            "Convert it to PNG (8- or 16-bit), or move it away.",
        )
    if not files:
        raise UserError(
            "PNG, JPEG or TIFF images in each folder of a data set",
            f"none in {folder} ({_found(folder)})",
            "Put images there, or remove the folder.",
        )
    return files


def _kind_of_part(folder: Path) -> Kind:
    inside = subfolders(folder)
    names = {entry.name.lower(): entry.name for entry in inside}
    if "images" in names and "masks" in names:
        return "masks"
    one_of_two = len(inside) == 1 and bool(names.keys() & {"images", "masks"})
    if not inside or one_of_two or not any(_holds_images(entry) for entry in inside):
        raise UserError(
            f"a folder with {LAYOUTS}",
            f"{folder}, which holds {_found(folder)}",
            "Arrange the files in one of these ways, or name another folder as the source.",
        )
    return "classes"


def _holds_images(folder: Path) -> bool:
    return any(entry.suffix.lower() in (*SUFFIXES, *OTHER_SUFFIXES) for entry in folder.iterdir())


def _found(folder: Path, most: int = 5) -> str:
    entries = sorted(entry for entry in folder.iterdir() if not _hidden(entry))
    if not entries:
        return "nothing"
    shown = ", ".join(entry.name + ("/" if entry.is_dir() else "") for entry in entries[:most])
    return shown if len(entries) <= most else f"{shown} and {len(entries) - most} more"


def _order(entry: Path) -> tuple[bool, int, str]:
    number = int(entry.name) if entry.name.isdecimal() else 0
    return (not entry.name.isdecimal(), number, entry.name)


def _hidden(entry: Path) -> bool:
    return entry.name.startswith((".", "__")) or entry.name == "Thumbs.db"
