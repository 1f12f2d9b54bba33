"""The words in names of folders and files that say image, mask or split."""

import re

SPLITS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
_SPLIT_OF = {word: split for split, words in SPLITS.items() for word in words}
_SPLIT_FOLDER = re.compile(r"(stage\d_)?(?P<split>[a-z]+?)([-_]?(set|data)|[-_]?20\d\d)?")

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
_TOKEN = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_WORDS = "|".join(sorted((IMAGE | MASK) - {"x", "y"}, key=len, reverse=True))
_AT_END = re.compile(rf"(?P<rest>.+?)[-_. ]+(?:ground[-_]?)?(?P<word>{_WORDS})", re.IGNORECASE)
_AT_START = re.compile(rf"(?P<word>{_WORDS})(?:[-_. ]+|(?=\d))(?P<rest>.+)", re.IGNORECASE)


def words(name: str) -> list[str]:
    """The words and numbers that a name is made of, in small letters: "trainMasks_2" -> train, masks, 2."""
    return [token.lower() for token in _TOKEN.findall(name)]


def split_of(folder: str) -> str | None:
    """The split that a folder is by its name: "train" of `train`, `Training`, `train2017`, `stage1_train`."""
    match = _SPLIT_FOLDER.fullmatch(folder.lower())
    return _SPLIT_OF.get(match["split"]) if match else None


def split_in(name: str) -> str | None:
    """The split that a name says among others: "train" of `instances_train2017`, `train_labels`."""
    splits = {_SPLIT_OF[word] for word in words(name) if word in _SPLIT_OF}
    return splits.pop() if len(splits) == 1 else None


def role(name: str) -> tuple[str | None, str | None]:
    """What a folder holds by its name ("image" or "mask"), and of which split; None for what it does not say.

    A name with any other word says nothing.
    """
    tokens = {word for word in words(name) if word not in _FILLING and not word.isdecimal()}
    splits = {_SPLIT_OF[word] for word in tokens if word in _SPLIT_OF}
    if not tokens or tokens - IMAGE - MASK - _SPLIT_OF.keys() or len(splits) > 1:
        return None, split_of(name)
    what = "mask" if MASK & tokens else "image" if IMAGE & tokens else None
    return what, splits.pop() if splits else None


def stripped(stem: str) -> tuple[str, str | None]:
    """A file's name without the word for image or mask at its end or beginning, and what that word says.

    "a_mask" -> ("a", "mask"); "img12" -> ("12", "image"); "mask" -> ("mask", None).
    """
    for pattern in (_AT_END, _AT_START):
        match = pattern.fullmatch(stem)
        if match:
            return match["rest"], "mask" if match["word"].lower() in MASK else "image"
    return stem, None


def in_order(name: str) -> tuple[bool, int, str]:
    """Key that sorts names, those that are numbers by their value and first."""
    number = int(name) if name.isdecimal() else 0
    return (not name.isdecimal(), number, name)
