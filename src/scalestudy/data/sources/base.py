"""What every source of data offers to `prepare`, and how samples are decoded side by side."""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from scalestudy.data.images.open import DamagedFile
from scalestudy.data.sources.files import LeftOut
from scalestudy.data.sources.registry import Kind
from scalestudy.data.types import Ranges, Sample, Size
from scalestudy.study.settings import DataSettings
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.data.images.tiles import Tiling

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Contents:
    """What a source holds, known before any pixel is decoded.

    `names` is None where rows have no names of their own; those of rows read from files are their paths, seen
    from the source's `identity`. `ignore` is 255 when masks get padded. `groups` is one text a row where rows
    belong together (tiles of an image, images of a patient): no split parts them. `sizes` are those of the
    images, `pages` how many each row brings, where it is yet to be cut (`cut.py`); `tiling` says how rows
    were cut. `formats` are the files' types and channels in words, `size_counts` the sizes of whole images,
    how many have each, and the first of them; the most frequent first.
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
    pages: list[int] | None = None
    tiling: "Tiling | None" = None
    formats: str | None = None
    size_counts: "list[tuple[Size, int, str]] | None" = None


@dataclass(frozen=True)
class SourceFindings:
    """What a source tells of itself: `left_out` at once, the rest once all of its rows were read.

    Attributes:
        left_out: What lies in it and is not taken.
        damaged: Files that it goes without.
        understood: How it was understood, in words; empty where that goes without saying.
        remarks: What was done to its images that a person should know, in sentences.
    """

    left_out: tuple[LeftOut, ...] = ()
    damaged: tuple[DamagedFile, ...] = ()
    understood: str = ""
    remarks: tuple[str, ...] = ()


class Source(Protocol):
    """A place that samples come from. `label` is for people, `identity` and `fingerprint` for the cache.

    It may also have `fetch(downloading)`, which has its files here before `contents`, and `findings()`.
    """

    kind: Kind
    label: str
    identity: str
    fingerprint: str

    def contents(self) -> Contents:
        """Look at headers only; refuses what cannot become one array."""

    def rows(self) -> Iterator[Sample]:
        """All samples in order: train, validation, test. Called once, after `contents`."""

    def class_names(self) -> list[str]:
        """Names of the classes, in the order of their indices. Called after `rows` is exhausted."""


def findings_of(source: Any) -> SourceFindings:
    """The source's `findings()`; empty where it has none."""
    findings: SourceFindings = source.findings() if hasattr(source, "findings") else SourceFindings()
    return findings


def side_by_side(function: Callable[[Item], Outcome], items: Iterable[Item]) -> Iterator[Outcome]:
    """Yield `function(item)` in order, computed by a few threads that run at most a few items ahead.

    They are daemons, so that Ctrl-C waits for no image under way, as it would for those of an executor.
    """
    threads = min(4, len(os.sched_getaffinity(0)))
    pending: deque[Future[Outcome]] = deque()
    tasks: SimpleQueue[tuple[Future[Outcome], Item] | None] = SimpleQueue()

    def compute() -> None:
        while task := tasks.get():
            future, item = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(item))
                except BaseException as error:
                    future.set_exception(error)

    for _ in range(threads):
        Thread(target=compute, name="decode", daemon=True).start()
    try:
        for item in items:
            pending.append(Future())
            tasks.put((pending[-1], item))
            if len(pending) > 2 * threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()
        for _ in range(threads):
            tasks.put(None)


def digest(*parts: object) -> str:
    """SHA-256 of the parts' texts, unambiguous about where one ends."""
    return hashlib.sha256("\0".join(repr(part) for part in parts).encode()).hexdigest()


def files_digest(root: Path, files: Iterable[Path]) -> str:
    """SHA-256 of the files' relative names, sizes and times of change (nanoseconds)."""
    stats = ((file.relative_to(root).as_posix(), file.stat()) for file in files)
    return digest(*((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats))


def require_two(count: int, where: str) -> None:
    """Refuse a set that cannot be split into training and validation samples."""
    if count < 2:
        expected = "at least 2 samples, one to train on and one to validate on"
        raise UserError(expected, f"{count} in {where}", "Add samples, or name another source.")


def require_classes(names: list[str], where: str) -> None:
    """Refuse a set in which there is nothing to tell apart."""
    if len(names) < 2:
        received = f"only class {names[0] if names else 'none'!r} in {where}"
        raise UserError("samples of at least 2 classes", received, "Add samples of another class.")


COLUMNS = ("file_column", "label_column", "mask_column", "split_column", "group_column")
"""Those of tables."""
OF_FILES = ("images", "masks", "label_pattern", "group_pattern", "colours", "value_range", *COLUMNS)
"""Those of images in files."""


def refuse_unused(data: DataSettings, keys: Iterable[str], what: str) -> None:
    """Refuse those of `keys` that are given; `what` is the source in words, for the message.

    Raises:
        UserError: one is.
    """
    given = [key for key in keys if getattr(data, key) is not None]
    if given:
        raise UserError(
            f"keys under [data] that apply to {what}",
            " and ".join(f"`{key}`" for key in given),
            "Remove the key, or name a source or a `layout` that uses it.",
        )
