"""Words in names of folders and files that mean image, mask or split."""

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


def stripped(stem: str) -> tuple[str, str | None]:
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
