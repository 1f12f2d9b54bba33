"""The files of a folder of samples: which are taken, which are left out, and which are refused."""

import os
import stat
from pathlib import Path

from scalestudy.data.images import suffixes
from scalestudy.data.images.open import is_animated
from scalestudy.data.sources.left_out import ANIMATED, NO_IMAGE, OTHER_FORMAT, SYSTEM, Leftovers
from scalestudy.util.errors import UserError

READ = "PNG, JPEG, TIFF, BMP, WebP or GIF"
_SYSTEM_NAMES = {
    "thumbs.db",
    "ehthumbs.db",
    "desktop.ini",
    "lost+found",
    "@eadir",
    "$recycle.bin",
    "system volume information",
    "__macosx",
    "__pycache__",
}
_IMAGES = frozenset((*suffixes.READ, *suffixes.NOT_READ))
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def image_files(folder: Path, left: Leftovers | None = None) -> list[Path]:
    """Image files directly inside `folder`, by name; links are followed.

    Args:
        folder: The folder.
        left: Is told what is left out: hidden files, files and folders that hold no images, animations, and
            images of formats that are not read, unless there are more of them than of others.

    Raises:
        UserError: It holds no images, mostly images of formats that are not read, images in folders of their
            own, or something under an image's name that is no file (a pipe, a broken link). Only files named
            .gif and .webp are opened.
    """
    left = left or Leftovers(folder)
    files: list[Path] = []
    foreign: list[Path] = []
    irregular: list[Path] = []
    nested: list[str] = []
    with os.scandir(folder) as scanned:
        entries = sorted(scanned, key=lambda item: item.name)
    for scanned_entry in entries:
        entry = Path(scanned_entry.path)
        suffix = entry.suffix.lower()
        # What scanning a folder tells of its files spares asking for each of them, but not of links.
        seen = entry if scanned_entry.is_symlink() else scanned_entry
        if is_system(entry):
            left.add(SYSTEM, entry)
        elif seen.is_dir():
            inside = _images_below(entry)
            if inside:
                nested.append(f"{entry}/ ({inside})")
            else:
                left.add(NO_IMAGE, entry)
        elif suffix not in (*suffixes.READ, *suffixes.NOT_READ):
            left.add(NO_IMAGE, entry)
        elif not seen.is_file():
            irregular.append(entry)
        elif suffix not in suffixes.READ:
            foreign.append(entry)
        elif suffix in suffixes.MAY_MOVE and is_animated(entry):
            left.add(ANIMATED, entry)
        else:
            files.append(entry)
    _refuse(irregular, foreign if len(foreign) > len(files) else [], nested)
    for entry in foreign:
        left.add(OTHER_FORMAT, entry)
    if not files:
        raise UserError(
            f"images ({READ}) in each folder of a data set",
            f"none in {folder} ({shown_entries(folder)})",
            "Put images there, or remove the folder.",
        )
    return files


def is_system(entry: Path) -> bool:
    """Whether a file or folder is hidden, or put there by an operating system and not by its user."""
    return is_system_name(entry.name)


def is_system_name(name: str) -> bool:
    """Whether a file or folder of this name is hidden, or put there by an operating system."""
    return name.startswith(".") or name.lower() in _SYSTEM_NAMES


def is_image_name(name: str) -> bool:
    """Whether a file of this name is taken for an image, of a format that is read or not."""
    return os.path.splitext(name)[1].lower() in _IMAGES and not is_system_name(name)


def shown_entries(folder: Path, most: int = 5) -> str:
    """The first visible entries of a folder, for messages."""
    entries = sorted(entry for entry in folder.iterdir() if not is_system(entry))
    return several([entry.name + ("/" if entry.is_dir() else "") for entry in entries], most) or "nothing"


def several(names: list[str], most: int = 5, between: str = ", ") -> str:
    """The first names, and how many more there are."""
    shown = between.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def what_is(path: Path) -> str:
    """What something that is no regular file is; looks at it without opening it."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return f"a link to {os.readlink(path)}, which does not exist" if path.is_symlink() else "missing"
    except OSError as error:
        return str(error.strerror)
    return next((name for test, name in _KINDS if test(mode)), "no regular file")


def _refuse(irregular: list[Path], foreign: list[Path], nested: list[str]) -> None:
    if irregular:
        raise UserError(
            "images in regular files",
            several([f"{entry} ({what_is(entry)})" for entry in irregular]),
            "Replace it by the image, or move it away.",
        )
    if foreign:
        raise UserError(
            f"images in files of a format that is read ({READ}), or most of them",
            several([str(entry) for entry in foreign]),
            "Convert them to PNG (8- or 16-bit), or move them away: a few among many images are left out.",
        )
    if nested:
        raise UserError(
            "images directly in each folder of samples, none in folders inside it",
            f"folders with images (how many): {several(nested)}",
            "Move the images up, or these folders out of the data set.",
        )


def _images_below(folder: Path) -> int:
    """How many images lie anywhere below a folder."""
    count = 0
    for _, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_system(Path(name))]
        count += sum(is_image_name(name) for name in names)
    return count
