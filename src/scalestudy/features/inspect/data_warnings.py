"""What of a data set may be wrong, and what to do about it. Pure."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import IGNORE, Array, Size

UNUSUAL = 3.0
"""How many times larger or smaller than the median a height or width is that is called unusual."""


@dataclass(frozen=True)
class DataWarning:
    """Something that may be a mistake.

    Attributes:
        name: Its identifier.
        title: What was found, with how many.
        action: What to do about it.
        samples: The samples, or groups of them.
        serious: Whether it makes results wrong, rather than worse.
    """

    name: str
    title: str
    action: str
    samples: tuple[str, ...] = ()
    serious: bool = False


@dataclass(frozen=True)
class ClassCount:
    """A class in the samples that were inspected.

    Attributes:
        name: Its name.
        samples: Samples of it, or in whose masks it is.
        share: Of the samples, or of the pixels of all masks that count.
        splits: Samples by split, for those that there are.
    """

    name: str
    samples: int
    share: float
    splits: dict[str, int]


@dataclass
class Statistics:
    """Statistics of the samples of a set, a row each.

    Attributes:
        names: A name for each.
        groups: The group of each, or None.
        splits: "train", "validation" or "test", or "" where nobody has split them yet.
        digests: SHA-256 of their pixels, shape and type.
        constant: Whether all their pixels have one value.
        labels: Of masks, how many pixels each class has, shape [256]; of classes, 1 for that of the sample.
    """

    names: list[str]
    groups: list[str] | None
    splits: list[str]
    digests: list[bytes] = field(default_factory=list)
    constant: list[bool] = field(default_factory=list)
    labels: list[Array] = field(default_factory=list)

    @property
    def of_classes(self) -> Array:
        """The labels of all samples, shape [N, 256]."""
        return np.stack(self.labels)

    def add(self, image: Array, target: Array | int) -> None:
        """Take those of one sample."""
        digest = hashlib.sha256(repr((image.shape, image.dtype.str)).encode())
        digest.update(np.ascontiguousarray(image).data)
        self.digests.append(digest.digest())
        self.constant.append(bool(image.min() == image.max()))
        self.labels.append(np.bincount(np.asarray(target).ravel(), minlength=256).astype(np.int64))


def data_warnings(
    statistics: Statistics,
    kind: Kind,
    classes: Sequence[ClassCount],
    sizes: Sequence[tuple[Size, int, str]],
) -> list[DataWarning]:
    """All warnings, the serious ones first."""
    warnings = [
        *_duplicates(statistics),
        *_absent(classes),
        *(_empty_masks(statistics) if kind == "masks" else ()),
        *_warning(
            "constant-image", _named(statistics, np.array(statistics.constant)),
            "image|images of a single value",
            "Nothing can be learnt from them: look whether an exposure failed or a file was saved empty.",
        ),
        *_unusual_sizes(sizes),
    ]  # fmt: skip
    return sorted(warnings, key=lambda warning: not warning.serious)


def _duplicates(statistics: Statistics) -> list[DataWarning]:
    rows_of: dict[bytes, list[int]] = {}
    for row, digest in enumerate(statistics.digests):
        rows_of.setdefault(digest, []).append(row)
    across, within = [], []
    for rows in rows_of.values():
        if len(rows) < 2:
            continue
        copies = " = ".join(_name(statistics, row) for row in rows)
        if len({statistics.splits[row] for row in rows}) > 1:
            across.append(copies)
        elif statistics.groups is None or len({statistics.groups[row] for row in rows}) > 1:
            within.append(copies)
    return [
        *_warning(
            "duplicate-across-splits", across, "image|images in more than one split, pixel for pixel",
            "Quality would be measured on what was trained on: remove the copies, or keep them together as a "
            "group.", serious=True,
        ),
        *_warning(
            "duplicate", within, "image|images more than once, pixel for pixel",
            "Remove the copies: they count more than others, and a new split may separate them.",
        ),
    ]  # fmt: skip


def _absent(classes: Sequence[ClassCount]) -> list[DataWarning]:
    untrained = [count.name for count in classes if count.splits.get("train") == 0]
    unmeasured = [
        f"{count.name} ({', '.join(split for split, samples in count.splits.items() if not samples)})"
        for count in classes
        if count.name not in untrained and not all(count.splits.values())
    ]
    action = "Make the split anew, or add samples of the class."
    return [
        *_warning(
            "class-without-training", untrained, "class|classes without a training sample", action,
            serious=True,
        ),
        *_warning("class-missing-in-split", unmeasured, "class|classes that a split does not hold", action),
    ]  # fmt: skip


def _empty_masks(statistics: Statistics) -> list[DataWarning]:
    labels = statistics.of_classes
    ignored = labels[:, :IGNORE].sum(axis=1) == 0
    empty = (labels[:, 1:IGNORE].sum(axis=1) == 0) & ~ignored
    return [
        *_warning(
            "empty-mask", _named(statistics, empty), "mask|masks without any labelled pixel",
            "Right where there is nothing to see; otherwise the mask is missing or was saved empty.",
        ),
        *_warning(
            "ignored-mask", _named(statistics, ignored), "mask|masks in which no pixel counts",
            "Remove them with their images.",
        ),
    ]  # fmt: skip


def _unusual_sizes(sizes: Sequence[tuple[Size, int, str]]) -> list[DataWarning]:
    if not sizes:
        return []
    repeated = np.repeat(np.array([size for size, _, _ in sizes]), [count for _, count, _ in sizes], axis=0)
    median = np.median(repeated, axis=0)
    odd = [
        f"{first} ({size[0]} x {size[1]}{f', {count} of them' if count > 1 else ''})"
        for size, count, first in sizes
        if (np.maximum(size / median, median / size) > UNUSUAL).any()
    ]
    return _warning(
        "unusual-size", odd, f"size|sizes far from the usual {median[0]:g} x {median[1]:g} pixels",
        "Thumbnails, or images of another magnification? Leave them out, or see how they look once resized.",
    )  # fmt: skip


def _warning(
    name: str, samples: Sequence[str], what: str, action: str, *, serious: bool = False
) -> list[DataWarning]:
    """A warning, if there are samples; `what` is "NOUN|NOUNS and the rest"."""
    if not samples:
        return []
    one, _, more = what.partition("|")
    many, _, rest = more.partition(" ")
    noun = one if len(samples) == 1 else many
    return [DataWarning(name, f"{len(samples):,} {noun} {rest}", action, tuple(samples), serious)]


def _named(statistics: Statistics, which: npt.NDArray[np.bool_]) -> list[str]:
    return [_name(statistics, int(row)) for row in np.flatnonzero(which)]


def _name(statistics: Statistics, row: int) -> str:
    split = statistics.splits[row]
    return f"{statistics.names[row]} ({split})" if split else statistics.names[row]
