"""Write the files of a prepared set into a temporary folder, which is renamed when complete."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scalestudy.data.images.form import stored_as
from scalestudy.data.sources.base import Contents, Source, findings_of, side_by_side
from scalestudy.data.sources.registry import Kind
from scalestudy.data.store.prepared import Prepared, Storage
from scalestudy.data.store.rows import ArrayFile, RowsFile, encode
from scalestudy.data.types import IGNORE, Array
from scalestudy.util.errors import UserError
from scalestudy.util.files import sync_folder, write_atomically
from scalestudy.util.locks import take

_MARK = ".tmp-"


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
        raise _unwritable("a cache folder that can be written to", folder, error) from error
    if lock is None:
        yield False
        return
    with lock:
        yield True


@contextmanager
def new_folder(place: Path, is_whole: Callable[[], bool], *, alone: bool) -> Iterator[Path]:
    """Yield a temporary folder, and rename it to `place` at the end, replacing an incomplete folder there.

    `is_whole` tells whether the folder at `place` is complete. Leftovers of killed processes are removed only
    if `alone`, while the lock is held.

    Raises:
        UserError: If the cache folder is not writable or full.
    """
    temporary = None
    try:
        for leftover in place.parent.glob(f"{place.name}{_MARK}*") if alone else ():
            shutil.rmtree(leftover, ignore_errors=True)
        temporary = Path(tempfile.mkdtemp(prefix=f"{place.name}{_MARK}", dir=place.parent))
        yield temporary
        temporary.chmod(0o755)
        if place.exists() and not is_whole():
            place.rename(temporary / "damaged")
            shutil.rmtree(temporary / "damaged")
        try:
            temporary.rename(place)
            sync_folder(place.parent)
        except OSError:
            # Without locks, another process may have completed it first: keep that folder and its splits.
            if not is_whole():
                raise
    except OSError as error:
        raise _unwritable(
            "a cache folder that stays, can be written to and has space", place, error
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _unwritable(expected: str, folder: Path, error: OSError) -> UserError:
    received = f"{folder.parent}: {error.strerror or error}"
    return UserError(expected, received, "Free some space there, or set another `cache` under [data].")


OnProgress = Callable[[int, int], None]
DAMAGED_FILES = "damaged.txt"
"""File of a prepared set that lists all damaged files; meta.json has the first of each kind of damage."""


class SampleRow(NamedTuple):
    """A sample as stored: input [H, W, C], target [H, W] or [1], and the file of the image."""

    image: Array
    target: Array
    file: Path | None


def bytes_of(kind: Kind, contents: Contents) -> int:
    """Return an upper bound for the bytes of the set's arrays on disk."""
    pixels = contents.input_shape[0] * contents.input_shape[1]
    one = pixels * contents.input_shape[2] * contents.dtype.itemsize + (pixels if kind == "masks" else 4)
    return contents.count * one + 1_000_000


def write_set(
    source: Source,
    contents: Contents,
    folder: Path,
    on_progress: OnProgress | None,
    storage: Storage = "arrays",
) -> None:
    """Write the rows and the manifest of a source into an empty folder.

    Raises:
        UserError: If the source is damaged, or its samples differ from its announcement or cannot be stored.
        OSError: If the folder is not writable or full.
    """
    masks = source.kind == "masks"
    target_shape, target_dtype = contents.input_shape[:2] if masks else (), np.dtype("u1" if masks else "i4")
    done = highest = 0
    ignore = contents.ignore

    def rows() -> Iterator[SampleRow]:
        nonlocal done, highest, ignore
        for image, target in source.rows():
            row_name = contents.names[done] if contents.names and done < contents.count else None
            name = f"{row_name or f'sample {done}'} of {source.identity}"
            pixels = _stored(image, contents.input_shape, contents.dtype, name)
            classes = _stored(np.asarray(target), target_shape, target_dtype, f"the target of {name}")
            if classes.min() < 0:
                raise UserError(
                    "classes numbered from 0", f"{name}, of class {classes.min()}", "Renumber the classes."
                )
            counted = classes
            if masks and classes.max() == IGNORE:  # padding, or ignored in masks
                counted, ignore = classes[classes != IGNORE], IGNORE
            highest = max(highest, int(counted.max(initial=0)))
            done += 1
            yield SampleRow(pixels, classes, None if row_name is None else Path(source.identity, row_name))
            if on_progress is not None:
                on_progress(done, contents.count)

    with ExitStack() as files:

        def column(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> ArrayFile | RowsFile:
            # Classes are always stored as an array: they are small.
            file: ArrayFile | RowsFile
            if storage == "encoded" and shape:
                file = RowsFile(folder, name)
            else:
                file = ArrayFile(folder, name, (contents.count, *shape), dtype)
            files.callback(file.close)
            return file

        inputs = column("inputs", contents.input_shape, contents.dtype)
        targets = column("targets", target_shape, target_dtype)
        for image, target in side_by_side(_encoded, rows()) if storage == "encoded" else map(_plain, rows()):
            inputs.write(image)
            targets.write(target)
        digests = inputs.finish() | targets.finish()
    names = source.class_names()
    if done != contents.count or highest >= len(names):  # a source of another package may be wrong
        raise UserError(
            f"{contents.count} samples of {len(names)} classes, as announced by the source",
            f"{done} samples with classes up to {highest} from {source.identity}",
            "Correct the source.",
        )
    findings = findings_of(source)
    damaged = sorted(f"{file.reason}\t{file.received}\n" for file in findings.damaged)
    if damaged:
        write_atomically(folder / DAMAGED_FILES, "".join(damaged))
    Prepared(
        path=folder,
        source=source.identity,
        fingerprint=source.fingerprint,
        kind=source.kind,
        count=contents.count,
        input_shape=contents.input_shape,
        dtype=contents.dtype,
        scale=contents.scale,
        ignore=ignore,
        class_names=names,
        given=contents.given,
        names=contents.names,
        groups=contents.groups,
        remarks=findings.remarks,
        formats=contents.formats,
        size_counts=contents.size_counts,
        tiling=contents.tiling,
        storage=storage,
        arrays=digests,
        bytes={name: (folder / name).stat().st_size for name in digests},
        left_out=findings.left_out,
        understood=findings.understood,
    ).write()


def _plain(row: SampleRow) -> tuple[Any, Any]:
    return row.image.data, row.target.data


def _encoded(row: SampleRow) -> tuple[Any, Any]:
    file = None
    if row.file is not None:
        with suppress(OSError):  # `encode` keeps the file only if it decodes to the image
            file = row.file.read_bytes()
    return encode(row.image, file), row.target.data if row.target.ndim == 1 else encode(row.target)


def _stored(array: Array, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> Array:
    if array.shape != shape:
        raise UserError(
            f"samples of the shape {list(shape)} that the source announced",
            f"{name} of shape {list(array.shape)}",
            "Run again if the file has just changed; otherwise correct the source.",
        )
    return np.ascontiguousarray(stored_as(array, dtype, name))
