"""Decode a source once, into rows on disk that all workers of a node share.

Files are written into a temporary folder, which is renamed when complete.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalestudy.config.settings import DataSettings, LaunchSettings
from scalestudy.data.images.form import store_as
from scalestudy.data.left_out import LeftOut
from scalestudy.data.samples import IGNORE, Array, Kind
from scalestudy.data.sources.custom import CustomSource
from scalestudy.data.sources.locate import find_source
from scalestudy.data.sources.paths import cache_folder, folder_of
from scalestudy.data.sources.source import (
    Contents,
    OnProgress,
    Source,
    digest,
    findings_of,
)
from scalestudy.data.store.prepared import PREPARED_SCHEMA, Prepared, write_header
from scalestudy.hardware.own_process import memory_limit
from scalestudy.util import units
from scalestudy.util.errors import UserError
from scalestudy.util.files import make_folder, sync_folder
from scalestudy.util.locks import take

_TASKS = {"masks": ', such as task = "unet"', "classes": ', such as task = "cnn"'}
_HOLDS = {
    "masks": (
        "images with masks",
        "Name a source with masks (a folder with images/ and masks/; `images` and `masks` name others)",
    ),
    "classes": (
        "images with one class each",
        "Name a source with classes (one folder for each class)",
    ),
    "custom": (
        "what read(data) of a Python file gives",
        "Define `read(data)` in the task file",
    ),
}
AT_WORK = 12
"""Maximum number of samples in memory while a set is prepared."""
_NO_CONTENT = {"source", "read", "image_size", "seed", "cache", "validation"}
"""Keys of [data] that are part of the source's identity, or do not change the stored data."""
_MARK = ".tmp-"
"""Part of the names of folders in which sets are being prepared."""


class ArrayFile:
    """Writes `NAME.npy`: first the header, then the bytes of rows.

    The constructor and all methods raise OSError if the folder is not writable or full.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        self.path = folder / f"{name}.npy"
        self._stream = open(self.path, "wb")  # noqa: SIM115 (closed by `finish` or `close`)
        self._digest = hashlib.sha256()
        write_header(self, shape, dtype)

    def write(self, data: Any) -> None:
        """Write bytes, or a contiguous buffer."""
        self._digest.update(data)
        self._stream.write(data)

    def finish(self) -> str:
        """Sync the file to disk, close it, and return its SHA-256."""
        # On disk before the folder gets its final name, which says that the set is complete.
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        return self._digest.hexdigest()

    def close(self) -> None:
        """Close the file, complete or not."""
        self._stream.close()


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Wait for the lock of a set and hold it; yield False on file systems without locks.

    Raises:
        UserError: If the cache folder cannot be created or written to.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = take(folder.parent / f"{folder.name}.lock", wait=True)
    except OSError as error:
        expected = "a cache folder that can be written to"
        raise _unwritable(expected, folder, error) from error
    if lock is None:
        yield False
        return
    with lock:
        yield True


@contextmanager
def new_folder(place: Path, *, alone: bool) -> Iterator[Path]:
    """Yield a temporary folder, and rename it to `place` at the end, replacing an incomplete folder there.

    Leftovers of killed processes are removed only if `alone`, while the lock is held.

    Raises:
        UserError: If the cache folder is not writable or full.
    """
    temporary = None
    try:
        if alone:
            for leftover in place.parent.glob(f"{place.name}{_MARK}*"):
                shutil.rmtree(leftover, ignore_errors=True)
        temporary = make_folder(place.parent, f"{place.name}{_MARK}")
        yield temporary
        if place.exists() and Prepared.find(place) is None:
            # Renamed before it is removed, so that nobody finds half a set there.
            place.rename(temporary / "damaged")
            shutil.rmtree(temporary / "damaged")
        try:
            temporary.rename(place)
            sync_folder(place.parent)
        except OSError:
            # Without locks, another process may have completed it first: keep that folder and its splits.
            if Prepared.find(place) is None:
                raise
    except OSError as error:
        raise _unwritable(
            "a cache folder that stays, can be written to and has space",
            place,
            error,
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _unwritable(expected: str, folder: Path, error: OSError) -> UserError:
    received = f"{folder.parent}: {error.strerror or error}"
    return UserError(
        expected,
        received,
        "Free some space there, or set another `cache` under [data].",
    )


def write_set(
    source: Source,
    contents: Contents,
    folder: Path,
    on_progress: OnProgress | None = None,
) -> None:
    """Write the rows and the manifest of a source into an empty folder.

    Raises:
        UserError: If the source is damaged, or its samples differ from its announcement or cannot be stored.
        OSError: If the folder is not writable or full.
    """
    masks = source.kind == "masks"
    target_shape: tuple[int, ...] = ()
    target_dtype: np.dtype[Any] = np.dtype(np.int32)
    if masks:
        target_shape, target_dtype = contents.input_shape[:2], np.dtype(np.uint8)
    done = highest = 0
    ignore = contents.ignore

    def rows() -> Iterator[tuple[Array, Array]]:
        nonlocal done, highest, ignore
        for image, target in source.rows():
            name = f"sample {done} of {source.identity}"
            if contents.names and done < contents.count:
                name = f"{contents.names[done]} of {source.identity}"
            pixels = _stored(image, contents.input_shape, contents.dtype, name)
            target_name = f"the target of {name}"
            classes = _stored(
                np.asarray(target),
                target_shape,
                target_dtype,
                target_name,
            )
            if classes.min() < 0:
                raise UserError(
                    "classes numbered from 0",
                    f"{name}, of class {classes.min()}",
                    "Renumber the classes.",
                )
            counted = classes
            if masks and classes.max() == IGNORE:  # padding, or ignored in masks
                counted, ignore = classes[classes != IGNORE], IGNORE
            highest = max(highest, int(counted.max(initial=0)))
            done += 1
            yield pixels, classes
            if on_progress is not None:
                on_progress(done, contents.count)

    with ExitStack() as files:
        inputs = ArrayFile(
            folder,
            "inputs",
            (contents.count, *contents.input_shape),
            contents.dtype,
        )
        files.callback(inputs.close)
        targets = ArrayFile(
            folder,
            "targets",
            (contents.count, *target_shape),
            target_dtype,
        )
        files.callback(targets.close)
        for image, target in rows():
            inputs.write(image.data)
            targets.write(target.data)
        digests = {file.path.name: file.finish() for file in (inputs, targets)}
    names = source.class_names()
    # A source of another package may be wrong.
    if done != contents.count or highest >= len(names):
        raise UserError(
            f"{contents.count} samples of {len(names)} classes, as announced by the source",
            f"{done} samples with classes up to {highest} from {source.identity}",
            "Correct the source.",
        )
    findings = findings_of(source)
    Prepared(
        path=folder,
        source=source.identity,
        fingerprint=source.fingerprint,
        kind=source.kind,
        class_names=names,
        remarks=findings.all_remarks,
        left_out=findings.left_out,
        understood=findings.understood,
        arrays=digests,
        **vars(contents) | {"ignore": ignore},  # `sizes` and `formats` are ignored
    ).write()


def _stored(
    array: Array,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    name: str,
) -> Array:
    if array.shape != shape:
        raise UserError(
            f"samples of the shape {list(shape)} that the source announced",
            f"{name} of shape {list(array.shape)}",
            "Run again if the file has just changed; otherwise correct the source.",
        )
    return np.ascontiguousarray(store_as(array, dtype, name))


@dataclass(frozen=True)
class PlannedSet:
    """A data set, prepared or not: its settings, its source, and its folder."""

    data: DataSettings
    base: Path
    source: Source
    folder: Path

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Files that `prepare` would skip. No image is read."""
        return findings_of(self.source).left_out

    def prepared(self) -> Prepared | None:
        """Return the set if `prepare` has made it, else None. Writes nothing."""
        return Prepared.find(self.folder)

    def prepare(
        self,
        on_progress: OnProgress | None = None,
        within: float = LaunchSettings().progress_timeout,
    ) -> Prepared:
        """Prepare the set, or return it at once if it is already prepared.

        Args:
            on_progress: Called with (samples done, total samples) while preparing.
            within: Maximum seconds between two samples of a user's `read`.

        Raises:
            UserError: If the source is damaged (the message names the file), or if the disk is full. No
                partial folder is left.
        """
        ready, source, folder = self.prepared(), self.source, self.folder
        if ready is not None:
            return ready
        # What `read` gives is known only after it has run.
        contents = None if isinstance(source, CustomSource) else source.contents()
        needed = 0 if contents is None else _needed(source, contents)
        with locked(folder) as alone:
            # Another process may have finished it while this one waited for the lock.
            ready = Prepared.find(folder)
            if ready is not None:
                return ready
            with new_folder(folder, alone=alone) as temporary:
                # Before decoding, which may take hours.
                _require_space(folder.parent, needed)
                if contents is not None:
                    write_set(source, contents, temporary, on_progress)
                elif isinstance(source, CustomSource):
                    source.write(temporary, on_progress, within)
                # Its fingerprint has the sizes and times of all files.
                now = find_source(self.data, base=self.base)
                if now.fingerprint != source.fingerprint:
                    raise UserError(
                        "a data set that does not change while it is prepared",
                        f"{source.identity}, in which files were added, removed or changed",
                        "Run again when nothing changes it any more.",
                    )
            return Prepared.open(folder)


def prepare(
    data: DataSettings,
    *,
    task_kind: Kind | None = None,
    base: Path = Path("."),
    **how: Any,
) -> Prepared:
    """Prepare a data set: `PlannedSet.prepare` of `find_set`."""
    return find_set(data, task_kind=task_kind, base=base).prepare(**how)


def find_prepared(
    data: DataSettings,
    *,
    task_kind: Kind | None = None,
    base: Path = Path("."),
) -> Prepared | None:
    """Return a data set if it is prepared, else None: `PlannedSet.prepared` of `find_set`."""
    return find_set(data, task_kind=task_kind, base=base).prepared()


def _needed(source: Source, contents: Contents) -> int:
    """Return an upper bound for the bytes of the set's arrays on disk.

    Raises:
        UserError: If the samples that are decoded in parallel do not fit into memory.
    """
    height, width, channels = contents.input_shape
    image = height * width * channels * contents.dtype.itemsize
    # A class has 32 bits, a pixel of a mask has 8.
    target = 4
    if source.kind == "masks":
        target = height * width
    if AT_WORK * image > memory_limit():
        raise UserError(
            f"samples of which {AT_WORK} fit into {units.size(memory_limit())} of memory",
            f"{source.identity} of {height:,} x {width:,} x {channels} {contents.dtype}",
            "Choose a smaller `image_size` under [data], or cut images with `tile`.",
        )
    return contents.count * (image + target) + 1_000_000


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{units.size(needed)} of free disk space for the prepared data set",
            f"{units.size(free)} in {folder}",
            "Free some space, set another `cache`, or choose a smaller `image_size` under [data].",
        )


def find_set(
    data: DataSettings,
    *,
    task_kind: Kind | None = None,
    base: Path = Path("."),
) -> PlannedSet:
    """Find the source of a data set, and the folder that `PlannedSet.prepare` would make. No image is read.

    A kind of data other than `task_kind` is refused. Relative paths begin at `base`, the folder of the study
    file.

    Raises:
        UserError: If the source is missing or of the wrong kind, or its layout is ambiguous.
    """
    source = find_source(data, base=base)
    if task_kind is not None and source.kind != task_kind:
        needed, action = _HOLDS[task_kind]
        found, _ = _HOLDS[source.kind]
        example = _TASKS.get(source.kind, "")
        raise UserError(
            f"{needed}, which the task needs",
            f"{data.source}, which holds {found}",
            f"{action}, or choose a task for {found}{example}.",
        )
    cache = cache_folder(data.cache, base)
    root = folder_of(str(data.source), base)
    # A cache inside the source would be read as part of it, or be moved along with it.
    if root is not None and Path(os.path.realpath(cache)).is_relative_to(root):
        raise UserError(
            "a cache folder outside the source",
            f"the cache {cache} in {root}",
            "Set another `cache` under [data].",
        )
    # Leave out keys at their default, so that a new key does not change the folders of existing sets.
    keys = data.model_dump(
        mode="json",
        exclude=_NO_CONTENT,
        exclude_defaults=True,
    )
    identity = (
        PREPARED_SCHEMA,
        source.kind,
        source.identity,
        source.fingerprint,
        data.image_size,
        *sorted(keys.items()),
    )
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", source.label)[:40]
    name = f"{label}-{digest(*identity)[:16]}"
    return PlannedSet(data, base, source, cache / name)
