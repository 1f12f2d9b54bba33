"""Files in a folder of samples: which are images, and what words in their names mean."""

import os
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from scalestudy.data.images.masks import ObjectMasks
from scalestudy.data.left_out import LeftOut
from scalestudy.util.text import join_first

READ_SUFFIXES = (
    ".png",
    ".jpg",
    ".jpeg",
    ".jpe",
    ".jfif",
    ".tif",
    ".tiff",
    ".bmp",
    ".gif",
    ".webp",
)
NOT_TAKEN = "images of no sample"
NO_IMAGE = "no image of a format that is read"
MOST_NAMES = 5
_SYSTEM = "thumbs.db ehthumbs.db desktop.ini lost+found @eadir $recycle.bin __macosx __pycache__"
_SYSTEM_NAMES = {*_SYSTEM.split(), "system volume information"}
SPLITS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
_SPLIT_OF = {word: split for split, words in SPLITS.items() for word in words}
_SPLIT_BESIDE_ROLE = _SPLIT_OF | {"tr": "train", "ts": "test"}
"""Splits in names that have a role too: `imagesTr` and `labelsTr` of nnU-Net."""
_SPLIT_FOLDER = re.compile(
    r"(stage\d_)?(?P<split>[a-z]+?)([-_]?(set|data)|[-_]?20\d\d)?"
)

_IMAGE_WORDS = "image images img imgs photo photos picture pictures raw input inputs x original originals scan scans"
IMAGE = frozenset(_IMAGE_WORDS.split())
_MASK_WORDS = """
    mask masks label labels lab labs gt groundtruth truth annotation annotations annot annots anno
    target targets y seg segs segmentation segmentations segmentationclass manual annotated labelled
    labeled
"""
MASK = frozenset(_MASK_WORDS.split())
_UNLESS_PAIRED = frozenset(("lab", "labs", "truth", "target", "targets", "y", "manual"))
"""Words that name masks beside images, but may name a class beside others."""
_FILL_WORDS = (
    "ground jpeg jpg png tif tiff files left bit class fine the of st nd rd th"
)
_FILLING = frozenset(_FILL_WORDS.split())
_TOKEN = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_MORE_IMAGE_WORDS = """
    data bild bilder foto fotos imagen imagenes immagine immagini imagem imagens afbeeldingen obrazy
"""
_MORE_MASK_WORDS = (
    "maske masken masque masques mascara mascaras maschera maschere maski"
)
_IMAGE_HINTS = IMAGE.union(_MORE_IMAGE_WORDS.split())
_MASK_HINTS = MASK.union(_MORE_MASK_WORDS.split())
"""Words that decide nothing alone, since a folder of this name may be a class."""
_WORDS = "|".join(sorted((IMAGE | MASK) - {"x", "y"}, key=len, reverse=True))
_AT_END = re.compile(
    rf"(?P<rest>.+?)[-_. ]+(?:ground[-_]?)?(?P<word>{_WORDS})",
    re.IGNORECASE,
)
_AT_START = re.compile(
    rf"(?P<word>{_WORDS})(?:[-_. ]+|(?=\d))(?P<rest>.+)",
    re.IGNORECASE,
)


def composed(text: str) -> str:
    """Return text in the Unicode form NFC, in which names are compared: some write "ä" as "a" and dots."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def words(name: str) -> list[str]:
    """Split a name into words and numbers in lower case: "trainMasks_2" -> train, masks, 2.

    Accents are dropped.
    """
    # In this form, an accent is a character of its own after its letter.
    letters = []
    for letter in unicodedata.normalize("NFKD", name):
        if not unicodedata.combining(letter):
            letters.append(letter)
    return [token.lower() for token in _TOKEN.findall("".join(letters))]


def split_of(folder: str) -> str | None:
    """Return the split that a folder name means: "train" for `train`, `train2017`, `stage1_train`."""
    match = _SPLIT_FOLDER.fullmatch(folder.lower())
    if match is None:
        return None
    return _SPLIT_OF.get(match["split"])


@lru_cache(maxsize=4096)
def role(name: str) -> tuple[str | None, str | None]:
    """Return the role of a folder by its name ("image" or "mask") and its split; None if unknown.

    A name with any other word has no role.
    """
    tokens = set()
    for word in words(name):
        if word not in _FILLING and not word.isdecimal():
            tokens.add(word)
    split_words = _SPLIT_OF
    if tokens & (IMAGE | MASK):
        split_words = _SPLIT_BESIDE_ROLE
    splits = {split_words[word] for word in tokens if word in split_words}
    others = tokens - IMAGE - MASK - split_words.keys()
    if not tokens or others or len(splits) > 1:
        return None, split_of(name)
    split = splits.pop() if splits else None
    if MASK & tokens:  # first, as in `image_masks`
        return "mask", split
    if IMAGE & tokens:
        return "image", split
    return None, split


def hint_of(name: str) -> tuple[str | None, frozenset[str]]:
    """Return the role that some word of a folder name suggests, and its other words.

    "images_collective" -> ("image", {"collective"}). A word for masks counts more than one for images.
    """
    tokens = frozenset(words(name)) - _FILLING
    if _MASK_HINTS & tokens:
        return "mask", tokens - _MASK_HINTS - _IMAGE_HINTS
    others = tokens - _IMAGE_HINTS
    if _IMAGE_HINTS & tokens:
        return "image", others
    return None, others


def is_mask_folder(name: str) -> bool:
    """Whether a folder of this name holds masks whatever lies beside it: `masks`, `mask_png`, `labels`."""
    what, _ = role(name)
    mask_words = MASK.intersection(words(name))
    return what == "mask" and not mask_words <= _UNLESS_PAIRED


def split_in(folder: str) -> str | None:
    """Return the split that a folder name means, alone or beside a role: `train`, `seg_train`, `imagesTr`."""
    return split_of(folder) or role(folder)[1]


def strip_suffix(stem: str) -> tuple[str, str | None]:
    """Remove a word for image or mask from the end or start of a file name; return the rest and the role.

    "a_mask" -> ("a", "mask"); "img12" -> ("12", "image"); "mask" -> ("mask", None).
    """
    for pattern in (_AT_END, _AT_START):
        match = pattern.fullmatch(stem)
        if match and match["word"].lower() in MASK:
            return match["rest"], "mask"
        if match:
            return match["rest"], "image"
    return stem, None


def in_order(name: str) -> tuple[bool, int, str]:
    """Return a sort key for names: first numbers by value, then other names."""
    if name.isdecimal():
        return False, int(name), name
    return True, 0, name


def is_system_name(name: str) -> bool:
    """Whether a file or folder of this name is hidden, or created by an operating system."""
    return name.startswith(".") or name.lower() in _SYSTEM_NAMES


@dataclass(frozen=True)
class ListedSample:
    """One sample of a folder.

    Attributes:
        target: Name of the class, the file of the mask, or the files of the masks of its objects.
        split: "train", "validation" or "test" if the folder defines it, else "".
        group: Group of related samples; "" for none.
    """

    image: Path
    target: str | Path | ObjectMasks
    split: str = ""
    group: str = ""

    @property
    def files(self) -> tuple[Path, ...]:
        """All files of the sample."""
        if isinstance(self.target, ObjectMasks):
            return (self.image, *self.target.files)
        if isinstance(self.target, Path):
            return (self.image, self.target)
        return (self.image,)


@dataclass(frozen=True)
class Tree:
    """All files below a folder, sorted by path: images, and others. Hidden and system files are skipped."""

    root: Path
    images: tuple[Path, ...]
    others: tuple[Path, ...]

    @classmethod
    def of(cls, root: Path) -> "Tree":
        """Walk a folder, following links. No file is opened.

        Raises:
            OSError: If a folder is not readable.
        """

        def fail(error: OSError) -> None:
            raise error

        images: list[Path] = []
        others: list[Path] = []
        visited: set[str] = set()
        # Without `onerror`, folders that cannot be read would be skipped.
        for at, folders, names in os.walk(root, onerror=fail, followlinks=True):
            real = os.path.realpath(at)
            if real in visited:  # a cycle of links
                folders[:] = []
                continue
            visited.add(real)
            # Sorted, since of several links to one folder the first is read.
            seen = [name for name in folders if not is_system_name(name)]
            folders[:] = sorted(seen)
            for name in names:
                if is_system_name(name):
                    continue
                path = os.path.join(at, name)
                # A link to nothing and a named pipe may be named like an image, too.
                readable = name.lower().endswith(READ_SUFFIXES) and os.path.isfile(path)
                side = images if readable else others
                side.append(Path(path))
        return cls(root, tuple(sorted(images)), tuple(sorted(others)))

    @cached_property
    def folders(self) -> dict[Path, tuple[str, ...]]:
        """Names of the folders between the root and each image."""
        start = len(self.root.parts)
        return {file: file.parts[start:-1] for file in self.images}

    def relative(self, file: Path) -> Path:
        """Return a path relative to the folder."""
        return file.relative_to(self.root)

    def left_out(self, taken: Collection[Path]) -> tuple[LeftOut, ...]:
        """Return the files that are not `taken`, by reason."""
        groups = []
        for reason, files in ((NOT_TAKEN, self.images), (NO_IMAGE, self.others)):
            rest = [file for file in files if file not in taken]
            if not rest:
                continue
            shown = []
            for file in rest[:MOST_NAMES]:
                # As valid text: names may be any bytes.
                name = os.fsencode(self.relative(file).as_posix())
                shown.append(name.decode(errors="backslashreplace"))
            groups.append(LeftOut(reason, len(rest), tuple(shown)))
        return tuple(groups)

    def __str__(self) -> str:
        """Return the path and the first entries, for messages."""
        entries = []
        for name in os.listdir(self.root):
            is_folder = (self.root / name).is_dir()
            entries.append(f"{name}/" if is_folder else name)
        shown = join_first(sorted(entries)) or "nothing"
        return f"{self.root} ({shown})"
