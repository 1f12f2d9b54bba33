"""Warnings about possible mistakes in a data set, and what to do about them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from scalestudy.data.samples import IGNORE, Array, Kind


@dataclass(frozen=True)
class DataWarning:
    """A possible mistake in a data set.

    Attributes:
        title: What was found, with the number of samples.
        samples: The samples, groups of samples or classes concerned.
        serious: Whether results become wrong, rather than only worse.
    """

    name: str
    title: str
    action: str
    samples: tuple[str, ...] = ()
    serious: bool = False


@dataclass(frozen=True)
class ClassCount:
    """The frequency of a class in the inspected samples.

    Attributes:
        samples: Number of samples of the class, or with the class in their mask.
        share: Share of the samples, or of all labelled pixels of masks.
        splits: Number of samples by split, for existing splits.
    """

    name: str
    samples: int
    share: float
    splits: dict[str, int]


@dataclass
class Statistics:
    """Statistics of the samples of a data set; each list has an element per sample.

    Attributes:
        splits: "train", "validation" or "test", or "" for samples that are not split yet.
        digests: SHA-256 of pixels, shape and type.
        labels: Pixels of the mask by class, or 1 for the class of the sample; shape [256].
    """

    names: Sequence[str]
    groups: Sequence[str] | None
    splits: list[str]
    digests: list[bytes] = field(default_factory=list)
    constant: list[bool] = field(default_factory=list)
    labels: list[Array] = field(default_factory=list)

    def add(self, image: Array, target: Array | int) -> None:
        """Add the statistics of a sample."""
        digest = hashlib.sha256(repr((image.shape, image.dtype.str)).encode())
        digest.update(np.ascontiguousarray(image).data)
        self.digests.append(digest.digest())
        self.constant.append(bool(image.min() == image.max()))
        self.labels.append(np.bincount(np.asarray(target).ravel(), minlength=256).astype(np.int64))

    def classes(self, names: Sequence[str], kind: Kind) -> list[ClassCount]:
        """Return the frequency of each class."""
        counts = np.stack(self.labels)[:, : IGNORE if kind == "masks" else None]
        splits, total = np.array(self.splits), max(int(counts.sum()), 1)
        known = [split for split in ("train", "validation", "test") if (splits == split).any()]
        classes = []
        for index, name in enumerate(names):
            column = counts[:, index] if index < counts.shape[1] else np.zeros(len(counts), int)
            by_split = {split: int(((column > 0) & (splits == split)).sum()) for split in known}
            share = float(column.sum() / total)
            classes.append(ClassCount(name, int((column > 0).sum()), share, by_split))
        return classes

    def named(self, which: npt.NDArray[np.bool_]) -> list[str]:
        """Return the names of the samples in the mask `which`, with their split."""
        return [self._name(int(row)) for row in np.flatnonzero(which)]

    def copies(self) -> tuple[list[str], list[str]]:
        """Return samples with equal pixels: in several splits, and in one split but several groups."""
        rows_of: dict[bytes, list[int]] = {}
        for row, digest in enumerate(self.digests):
            rows_of.setdefault(digest, []).append(row)
        across, within = [], []
        for rows in rows_of.values():
            shown = " = ".join(map(self._name, rows))
            if len({self.splits[row] for row in rows}) > 1:
                across.append(shown)
            elif len({self.groups[row] if self.groups else row for row in rows}) > 1:
                within.append(shown)
        return across, within

    def _name(self, row: int) -> str:
        return f"{self.names[row]} ({self.splits[row]})" if self.splits[row] else self.names[row]


def data_warnings(statistics: Statistics, kind: Kind, classes: Sequence[ClassCount]) -> list[DataWarning]:
    """Return all warnings, the serious ones first."""
    across, within = statistics.copies()
    untrained = [count.name for count in classes if count.splits.get("train") == 0]
    unmeasured = [
        f"{count.name} ({', '.join(split for split, samples in count.splits.items() if not samples)})"
        for count in classes
        if count.name not in untrained and not all(count.splits.values())
    ]
    empty = np.stack(statistics.labels)[:, 1:IGNORE].sum(axis=1) == 0
    split_anew = "Create the split again, or add samples of the class."
    found = (
        (
            "duplicate-across-splits",
            across,
            "image|images in more than one split, pixel for pixel",
            "Quality would be measured on what was trained on: remove the copies, or keep them together as a "
            "group.",
        ),
        ("class-without-training", untrained, "class|classes without a training sample", split_anew),
        (
            "duplicate",
            within,
            "image|images more than once, pixel for pixel",
            "Remove the copies: they count more than others, and a new split may separate them.",
        ),
        ("class-missing-in-split", unmeasured, "class|classes that a split does not hold", split_anew),
        (
            "empty-mask",
            statistics.named(empty) if kind == "masks" else [],
            "mask|masks without any labelled pixel",
            "Right where there is nothing to see; otherwise the mask is missing or was saved empty.",
        ),
        (
            "constant-image",
            statistics.named(np.array(statistics.constant)),
            "image|images of a single value",
            "Nothing can be learnt from them: look whether an exposure failed or a file was saved empty.",
        ),
    )
    serious = ("duplicate-across-splits", "class-without-training")
    return [
        DataWarning(name, _count(samples, what), action, tuple(samples), name in serious)
        for name, samples, what, action in found
        if samples
    ]


def _count(samples: Sequence[str], what: str) -> str:
    """Return the number of samples in words; `what` has the form "NOUN|NOUNS and the rest"."""
    one, _, more = what.partition("|")
    many, _, rest = more.partition(" ")
    return f"{len(samples):,} {one if len(samples) == 1 else many} {rest}"
