"""Which words in the names of folders and files say "image", "mask", "training" and the like: one table."""

import re

from scalestudy.data.layout import SPLITS

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
    found = [word for word in words(name) if word not in _FILLING and not word.isdecimal()]
    if not found or not all(word in IMAGE or word in MASK or word in _SPLIT_OF for word in found):
        return None, None
    splits = {_SPLIT_OF[word] for word in found if word in _SPLIT_OF}
    if len(splits) > 1:
        return None, None
    what = "mask" if MASK & set(found) else "image" if IMAGE & set(found) else None
    return what, splits.pop() if splits else None


def split_in(name: str) -> str | None:
    """The split that a name says: "train" of `Training`, `train2017`, `stage1_train`, `train_labels`."""
    found = {_SPLIT_OF[word] for word in words(name) if word in _SPLIT_OF}
    return found.pop() if len(found) == 1 else None


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
