"""The interface between data sources and `prepare`, and parallel decoding of samples."""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from scalestudy.config.settings import DataSettings
from scalestudy.data.left_out import LeftOut
from scalestudy.data.samples import Kind, Ranges, Sample, Size
from scalestudy.util.errors import UserError

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
OnProgress = Callable[[int, int], None]
"""Called with the samples done and all samples."""

COLUMNS = ("file_column", "label_column")
"""Keys of [data] for tables."""
OF_FILES = (
    "images",
    "masks",
    "label_pattern",
    "group_pattern",
    "colours",
    "value_range",
    *COLUMNS,
)
"""Keys of [data] for images in files."""


@dataclass(frozen=True)
class Contents:
    """Contents of a source, known before any pixel is decoded.

    Most attributes are those of `Prepared`. Others:

    Attributes:
        names: Names of the rows, for files their paths relative to the source's `identity`; or None.
        groups: Group of each row (tiles of an image, images of a patient), which a split keeps together.
        sizes: Height and width of each image.
        formats: Types and channels of the files, in words.
    """

    count: int
    input_shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    scale: float
    names: list[str] | None
    given: Ranges
    ignore: int | None = None
    groups: list[str] | None = None
    sizes: list[Size] | None = None
    formats: str | None = None


@dataclass(frozen=True)
class Doubt:
    """A sign that a source holds something else than it is read as, and what to do then.

    Attributes:
        name: Name of the warning.
    """

    name: str
    title: str
    action: str


@dataclass(frozen=True)
class SourceFindings:
    """Findings of a source. `left_out` is known at once, the others after all rows were read.

    Attributes:
        left_out: Files that are skipped.
        understood: How the layout was interpreted, in words; may be empty.
        remarks: Sentences about the processing of images that a user should know.
        doubts: Signs that the source holds something else than it is read as.
    """

    left_out: tuple[LeftOut, ...] = ()
    understood: str = ""
    remarks: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()

    @property
    def all_remarks(self) -> tuple[str, ...]:
        """Remarks and doubts in words."""
        doubts = [f"{doubt.title}. {doubt.action}" for doubt in self.doubts]
        return (*self.remarks, *doubts)


class Source(Protocol):
    """A source of samples. `label` is for display, `identity` and `fingerprint` are for the cache.

    It may also have `findings()`, and `known_classes`, the number of classes if it is known unread.
    """

    kind: Kind
    label: str
    identity: str
    fingerprint: str

    def contents(self) -> Contents:
        """Read headers only; refuse images that do not fit into one array."""

    def rows(self) -> Iterator[Sample]:
        """Yield all samples in the order train, validation, test. Called once, after `contents`."""

    def class_names(self) -> list[str]:
        """Return class names in the order of the indices. Called after `rows` is exhausted."""


def findings_of(source: Any) -> SourceFindings:
    """Return the source's `findings()`; empty if it has no such method."""
    # Sources of other packages may lack it, as `Source` allows.
    if not hasattr(source, "findings"):
        return SourceFindings()
    findings: SourceFindings = source.findings()
    return findings


def side_by_side(
    function: Callable[[Item], Outcome], items: Iterable[Item]
) -> Iterator[Outcome]:
    """Yield `function(item)` in order, computed by a few threads that run a few items ahead."""
    threads = min(4, len(os.sched_getaffinity(0)))
    pool = ThreadPoolExecutor(threads, "decode")
    pending = deque[Future[Outcome]]()
    try:
        for item in items:
            pending.append(pool.submit(function, item))
            # A few ahead, so that decoded images do not fill the memory.
            if len(pending) > 2 * threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        # The caller may stop early, as on an error.
        pool.shutdown(wait=False, cancel_futures=True)


def digest(*parts: object) -> str:
    """Return the SHA-256 of the parts' representations, with separators."""
    # Separated: 1 and 23 would otherwise be the same as 12 and 3.
    text = "\0".join(map(repr, parts))
    return hashlib.sha256(text.encode()).hexdigest()


def files_digest(root: Path, files: Iterable[Path]) -> str:
    """Return the SHA-256 of the files' relative names, sizes and modification times (nanoseconds).

    Times are compared for equality only, each with an earlier one of the same file, so no clock matters.
    """
    described = []
    for file in files:
        found = file.stat()
        name = file.relative_to(root).as_posix()
        described.append((name, found.st_size, found.st_mtime_ns))
    return digest(*described)


def require_two(count: int, where: str) -> None:
    """Refuse a set that cannot be split into training and validation samples."""
    if count < 2:
        raise UserError(
            "at least 2 samples, one to train on and one to validate on",
            f"{count} in {where}",
            "Add samples, or name another source.",
        )


def require_classes(names: list[str], where: str) -> None:
    """Refuse a set with fewer than two classes."""
    if len(names) < 2:
        only = names[0] if names else "none"
        raise UserError(
            "samples of at least 2 classes",
            f"only class {only!r} in {where}",
            "Add samples of another class.",
        )


def refuse_unused(data: DataSettings, keys: Iterable[str], what: str) -> None:
    """Refuse keys that the source does not use; `what` describes the source in the message.

    Raises:
        UserError: If one of `keys` is set.
    """
    given = [key for key in keys if getattr(data, key) is not None]
    if given:
        quoted = [f"`{key}`" for key in given]
        raise UserError(
            f"keys under [data] that apply to {what}",
            " and ".join(quoted),
            "Remove the key, or name a source that uses it.",
        )
