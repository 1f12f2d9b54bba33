"""Files in a folder of samples: which are used, skipped or refused, and what words in their names mean."""

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from scalestudy.util.errors import UserError, escape

SPLITS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
_SPLIT_OF = {word: split for split, words in SPLITS.items() for word in words}
_SPLIT_FOLDER = re.compile(r"(stage\d_)?(?P<split>[a-z]+?)([-_]?(set|data)|[-_]?20\d\d)?")

_IMAGE_WORDS = (
    "image images img imgs photo photos picture pictures raw input inputs x original originals scan scans"
)
IMAGE = frozenset(_IMAGE_WORDS.split())
_MASK_WORDS = """
    mask masks label labels lab labs gt groundtruth truth annotation annotations annot annots anno
    target targets y seg segs segmentation segmentations segmentationclass manual annotated labelled
    labeled
"""
MASK = frozenset(_MASK_WORDS.split())
_UNLESS_PAIRED = frozenset(("lab", "labs", "truth", "target", "targets", "y", "manual"))
"""Words that name masks beside images, but may name a class beside others."""
_FILL_WORDS = "ground jpeg jpg png tif tiff files left bit class fine the of"
_FILLING = frozenset(_FILL_WORDS.split())
_TOKEN = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_WORDS = "|".join(sorted((IMAGE | MASK) - {"x", "y"}, key=len, reverse=True))
_AT_END = re.compile(rf"(?P<rest>.+?)[-_. ]+(?:ground[-_]?)?(?P<word>{_WORDS})", re.IGNORECASE)
_AT_START = re.compile(rf"(?P<word>{_WORDS})(?:[-_. ]+|(?=\d))(?P<rest>.+)", re.IGNORECASE)


def words(name: str) -> list[str]:
    """Split a name into words and numbers in lower case: "trainMasks_2" -> train, masks, 2."""
    return [token.lower() for token in _TOKEN.findall(name)]


def split_of(folder: str) -> str | None:
    """Return the split that a folder name means: "train" for `train`, `train2017`, `stage1_train`."""
    match = _SPLIT_FOLDER.fullmatch(folder.lower())
    return _SPLIT_OF.get(match["split"]) if match else None


def split_in(name: str) -> str | None:
    """Return the only split among the words of a name: "train" for `instances_train2017`, `train_labels`."""
    splits = {_SPLIT_OF[word] for word in words(name) if word in _SPLIT_OF}
    return splits.pop() if len(splits) == 1 else None


def role(name: str) -> tuple[str | None, str | None]:
    """Return the role of a folder by its name ("image" or "mask") and its split; None if unknown.

    A name with any other word has no role.
    """
    tokens = {word for word in words(name) if word not in _FILLING and not word.isdecimal()}
    splits = {_SPLIT_OF[word] for word in tokens if word in _SPLIT_OF}
    if not tokens or tokens - IMAGE - MASK - _SPLIT_OF.keys() or len(splits) > 1:
        return None, split_of(name)
    what = "mask" if MASK & tokens else "image" if IMAGE & tokens else None
    return what, splits.pop() if splits else None


def is_mask_folder(name: str) -> bool:
    """Whether a folder of this name holds masks whatever lies beside it: `masks`, `mask_png`, `labels`."""
    return role(name)[0] == "mask" and not _UNLESS_PAIRED.issuperset(MASK.intersection(words(name)))


def strip_suffix(stem: str) -> tuple[str, str | None]:
    """Remove a word for image or mask from the end or start of a file name; return the rest and the role.

    "a_mask" -> ("a", "mask"); "img12" -> ("12", "image"); "mask" -> ("mask", None).
    """
    for pattern in (_AT_END, _AT_START):
        match = pattern.fullmatch(stem)
        if match:
            return match["rest"], "mask" if match["word"].lower() in MASK else "image"
    return stem, None


def in_order(name: str) -> tuple[bool, int, str]:
    """Return a sort key for names: first numbers by value, then other names."""
    number = int(name) if name.isdecimal() else 0
    return (not name.isdecimal(), number, name)


READ = "PNG, JPEG, TIFF, BMP, WebP or GIF"
SYSTEM = "hidden or of the system"
NO_IMAGE = "no image by their name"
BESIDE = "beside the folders of samples"
OTHER_FORMAT = "of a format that is not read"
DAMAGED = "damaged"
MOST_NAMES = 5
_SYSTEM = "thumbs.db ehthumbs.db desktop.ini lost+found @eadir $recycle.bin __macosx __pycache__"
_SYSTEM_NAMES = {*_SYSTEM.split(), "system volume information"}
READ_SUFFIXES = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".tif", ".tiff", ".bmp", ".gif", ".webp")
_NOT_READ = """
    .jp2 .j2k .jpx .jxl .heic .heif .avif .tga .psd .ppm .pgm .pbm .pnm .exr .hdr .dng .cr2 .nef .arw
    .npy .dcm .nii .dm3 .dm4 .mrc .czi .nd2 .lif .oib .oif
"""
_IMAGES = frozenset((*READ_SUFFIXES, *_NOT_READ.split()))


def is_system_name(name: str) -> bool:
    """Whether a file or folder of this name is hidden, or created by an operating system."""
    return name.startswith(".") or name.lower() in _SYSTEM_NAMES


def is_system(entry: Path) -> bool:
    """Apply `is_system_name` to the last part of a path."""
    return is_system_name(entry.name)


def is_image_name(name: str) -> bool:
    """Whether a file of this name is an image, of a supported format or not."""
    return os.path.splitext(name)[1].lower() in _IMAGES and not is_system_name(name)


def several(names: list[str], most: int = 5, between: str = ", ") -> str:
    """Join the first names, and add the number of others."""
    shown = between.join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


@dataclass(frozen=True)
class LeftOut:
    """Entries skipped for one reason: their number, and the first ones relative to the source."""

    reason: str
    count: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.names) else ""
        return f"{self.count} left out ({self.reason}): {', '.join(map(escape, self.names))}{more}"


@dataclass
class Leftovers:
    """Collects skipped entries while a folder is listed; a folder counts as one entry."""

    root: Path
    _entries: dict[str, list[Path]] = field(default_factory=dict)

    def add(self, reason: str, entry: Path) -> None:
        """Add a skipped file or folder."""
        self._entries.setdefault(reason, []).append(entry)

    def add_others(self, folder: Path, taken: Iterable[Path]) -> None:
        """Add all entries of `folder` that are not `taken`."""
        taken = set(taken)
        for entry in sorted(folder.iterdir()):
            if entry not in taken:
                self.add(SYSTEM if is_system(entry) else BESIDE, entry)

    def groups(self, taken: Collection[Path] = ()) -> tuple[LeftOut, ...]:
        """Return the skipped entries by reason, without those that are `taken` after all."""
        groups = []
        for reason, entries in self._entries.items():
            rest = [entry for entry in entries if entry not in taken]
            names = []
            for entry in rest[:MOST_NAMES]:  # as valid text: names may be any bytes
                path = os.fsencode(entry.relative_to(self.root).as_posix())
                names.append(path.decode(errors="backslashreplace") + "/" * entry.is_dir())
            if rest:
                groups.append(LeftOut(reason, len(rest), tuple(names)))
        return tuple(groups)


class Directory:
    """The visible folders and files in a folder; links count as their targets."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def folders(self) -> dict[str, "Directory"]:
        """Folders by name; numbers are sorted by value."""
        return {name: Directory(self.path / name) for name in sorted(self._scanned[0], key=in_order)}

    @property
    def files(self) -> list[str]:
        """Names of all other entries, sorted."""
        return self._scanned[1]

    @cached_property
    def images(self) -> list[str]:
        """Names of image files, sorted."""
        return [name for name in self.files if is_image_name(name)]

    def __str__(self) -> str:
        """Return the path and the first entries, for messages."""
        shown = sorted([*(f"{name}/" for name in self._scanned[0]), *self.files])
        return f"{self.path} ({several(shown) or 'nothing'})"

    @cached_property
    def _scanned(self) -> tuple[list[str], list[str]]:
        folders: list[str] = []
        files: list[str] = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                if not is_system_name(entry.name):
                    (folders if entry.is_dir() else files).append(entry.name)
        return folders, sorted(files)


def image_files(folder: Path, left: Leftovers) -> list[Path]:
    """Return the image files directly inside `folder`, by name. Links are followed; no file is opened.

    Hidden files, files and folders without images, and images of unsupported formats are added to `left`.

    Raises:
        UserError: If there are no images, if most have unsupported formats, if there are images in inner
            folders, or if an image name is not a regular file (a pipe, a broken link).
    """
    files: list[Path] = []
    foreign: list[Path] = []
    irregular: list[str] = []
    nested: list[str] = []
    with os.scandir(folder) as scanned:
        entries = sorted(scanned, key=lambda entry: entry.name)
    for entry in entries:
        path = Path(entry.path)
        suffix = path.suffix.lower()
        if is_system_name(entry.name):
            left.add(SYSTEM, path)
        elif entry.is_dir():
            if inside := len(images_below(path)):
                nested.append(f"{path}/ ({inside})")
            else:
                left.add(NO_IMAGE, path)
        elif suffix not in _IMAGES:
            left.add(NO_IMAGE, path)
        elif not entry.is_file():
            irregular.append(str(path))
        else:
            (files if suffix in READ_SUFFIXES else foreign).append(path)
    mostly_foreign = [str(path) for path in foreign] if len(foreign) > len(files) else []
    for faults, expected, action in (
        (irregular, "images in regular files", "Replace it by the image, or move it away."),
        (
            mostly_foreign,
            f"images in files of a format that is read ({READ}), or most of them",
            "Convert them to PNG (8- or 16-bit), or move them away: a few among many images are left out.",
        ),
        (
            nested,
            "images directly in each folder of samples, none in folders inside it",
            "Move the images up, or these folders out of the data set.",
        ),
    ):
        if faults:
            raise UserError(expected, several(faults), action)
    for path in foreign:
        left.add(OTHER_FORMAT, path)
    if not files:
        raise without_images([Directory(folder)])
    return files


def without_images(folders: list[Directory]) -> UserError:
    """Return the error for folders of samples that hold no image."""
    return UserError(
        f"images ({READ}) in each folder of a data set",
        f"none in {several([str(folder) for folder in folders])}",
        "Put images there, or remove the folders.",
    )


def images_below(folder: Path) -> list[Path]:
    """Return all images below a folder by path. Links are followed; hidden and system entries are skipped."""
    return _below(folder)[0]


def _below(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return all images below a folder by path, and all other files and skipped folders."""
    images: list[Path] = []
    others: list[Path] = []
    visited: set[str] = set()
    for at, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(at)
        if real in visited:  # a cycle of links
            folders[:] = []
            continue
        visited.add(real)
        others += [Path(at, name) for name in sorted(folders) if is_system_name(name)]
        folders[:] = sorted(name for name in folders if not is_system_name(name))
        for name in sorted(names):
            (images if is_image_name(name) else others).append(Path(at, name))
    return images, others


class ImageIndex:
    """The images below `root`, found by path, by name, or by name without extension."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files, self._others = _below(root)
        self._by_path = {file.relative_to(root).as_posix(): file for file in self.files}
        self._by_name: dict[str, list[Path]] = defaultdict(list)
        for file in self.files:
            for name in {file.name.lower(), file.stem.lower()}:
                self._by_name[name].append(file)

    def find(self, written: str, table: Path, split: str) -> Path | None:
        """Find an image that a table names: relative to the root or the table, or by its name alone.

        Names are not case-sensitive. Among images of the same name, one in a folder of the table's split is
        preferred.

        Raises:
            UserError: If several images of that name remain.
        """
        name = written.replace("\\", "/")
        beside = table.parent.relative_to(self.root).as_posix()
        for path in (name, str(PurePosixPath(beside, name))):
            if path in self._by_path:
                return self._by_path[path]
        files = self._by_name.get(name.rpartition("/")[2].lower(), [])
        if len(files) > 1 and "/" in name:
            files = [file for file in files if file.as_posix().endswith(f"/{name}")] or files
        if len(files) > 1 and split:
            of_split = [file for file in files if split_in(file.relative_to(self.root).parts[0]) == split]
            files = of_split or files
        if len(files) > 1:
            raise UserError(
                f"one file for {written!r} of {table}",
                " and ".join(map(str, files[:2])),
                "Write paths relative to the table, with extensions.",
            )
        return files[0] if files else None

    def leave_rest(self, taken: set[Path], sources: list[Path], reason: str, left: Leftovers) -> None:
        """Add other entries below the root than `taken` and `sources` to `left`; `reason` is for images."""
        for file in self.files:
            if file not in taken:
                left.add(reason, file)
        for entry in self._others:
            if entry.parent != self.root and entry not in sources:
                left.add(SYSTEM if is_system_name(entry.name) else NO_IMAGE, entry)
        tops = {self.root / path.relative_to(self.root).parts[0] for path in (*self.files, *sources)}
        left.add_others(self.root, tops)
