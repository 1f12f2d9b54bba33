"""Decode a source once, to integer arrays on disk that all workers of a node share."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from scalestudy import units
from scalestudy.data.digested import Digested
from scalestudy.data.kinds import Kind
from scalestudy.data.locate import expand, find_source
from scalestudy.data.prepared import PREPARED_SCHEMA, Prepared
from scalestudy.data.source import Contents, Size, Source, digest
from scalestudy.errors import UserError
from scalestudy.files import sync_folder, write_atomically
from scalestudy.locks import take
from scalestudy.seals import sealed

OnProgress = Callable[[int, int], None]
_HOLDS = {
    "masks": ("images with masks", "Name a source with masks (a folder with images/ and masks/)"),
    "classes": ("images with one class each", "Name a source with classes (one folder for each class)"),
}


def prepare(
    source: str | Path,
    *,
    task_kind: Kind | None = None,
    image_size: Size | None = None,
    cache: str | Path | None = None,
    seed: int = 0,
    base: Path = Path("."),
    on_progress: OnProgress | None = None,
) -> Prepared:
    """Prepare a data set, or return at once when that was done before.

    Args:
        source: A folder, an .npz file, "indents", "indents:COUNT" or "digits"; may hold `~` and $VARIABLES.
        task_kind: What the task needs; another kind is refused.
        image_size: Height and width in pixels to fit images into (aspect kept, padded).
        cache: Folder of prepared data sets; the user's cache folder when None.
        seed: Seed of made data.
        base: Folder that relative paths are seen from: the study file's.
        on_progress: Called with (samples done, samples in all) while preparing.

    Raises:
        UserError: the source is missing, of the wrong kind or damaged (the file is named), or the disk
            is full. Nothing half-written is left.
    """
    found, folder = _place(source, task_kind, image_size, cache, seed, base)
    ready = _opened(folder)
    if ready is not None:
        return ready
    with _locked(folder):
        # Another process may have finished it while this one waited for the lock.
        ready = _opened(folder)
        if ready is None:
            _make(found, folder, on_progress)
            ready = Prepared.open(folder)
    return ready


def find_prepared(
    source: str | Path,
    *,
    task_kind: Kind | None = None,
    image_size: Size | None = None,
    cache: str | Path | None = None,
    seed: int = 0,
    base: Path = Path("."),
) -> Prepared | None:
    """The data set that `prepare` with these arguments has made, or None: nothing is decoded or written.

    Raises:
        UserError: the source is missing, or of the wrong kind.
    """
    return _opened(_place(source, task_kind, image_size, cache, seed, base)[1])


def prepared_bytes(
    source: str | Path, *, image_size: Size | None = None, seed: int = 0, base: Path = Path(".")
) -> int:
    """Bytes that `prepare` with these arguments would write: headers are looked at, nothing is decoded.

    Raises:
        UserError: the source is missing, or cannot become one array.
    """
    found = find_source(source, base=base, image_size=image_size, seed=seed)
    return _bytes(found.kind, found.contents())


def cache_folder(cache: str | Path | None, base: Path = Path(".")) -> Path:
    """Folder of prepared data sets: `cache` seen from `base`, else the user's cache folder."""
    if cache is not None:
        return expand(str(cache), base)
    return Path(platformdirs.user_cache_dir("scalestudy", appauthor=False)) / "prepared"


def _place(
    source: str | Path,
    task_kind: Kind | None,
    image_size: Size | None,
    cache: str | Path | None,
    seed: int,
    base: Path,
) -> tuple[Source, Path]:
    """The source, and the folder that it is prepared in."""
    found = find_source(source, base=base, image_size=image_size, seed=seed)
    if task_kind is not None and found.kind != task_kind:
        _, action = _HOLDS[task_kind]
        raise UserError(
            f"{_HOLDS[task_kind][0]}, which the task needs",
            f"{source}, which holds {_HOLDS[found.kind][0]}",
            f"{action}, or choose a task for {_HOLDS[found.kind][0]}.",
        )
    store = cache_folder(cache, base)
    identity = digest(PREPARED_SCHEMA, found.kind, found.identity, found.fingerprint, image_size)
    folder = store / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', found.label)[:40]}-{identity[:16]}"
    return found, folder


def _opened(folder: Path) -> Prepared | None:
    """The prepared data set, or None when it is missing or damaged (it is then made anew)."""
    try:
        return Prepared.open(folder)
    except UserError:
        return None


def _locked(folder: Path) -> AbstractContextManager[object]:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return take(folder.with_name(folder.name + ".lock"), wait=True) or nullcontext()
    except OSError as error:
        raise UserError(
            "a cache folder that can be written to",
            f"{folder.parent}: {error.strerror}",
            "Name another one as `cache` under [data].",
        ) from error


def _make(source: Source, folder: Path, on_progress: OnProgress | None) -> None:
    """Write the arrays into a folder beside `folder` and rename it. The lock is held."""
    for leftover in folder.parent.glob(f"{folder.name}.tmp-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    contents = source.contents()
    _require_space(folder.parent, _bytes(source.kind, contents))
    temporary = Path(tempfile.mkdtemp(prefix=f"{folder.name}.tmp-", dir=folder.parent))
    try:
        _write(source, contents, temporary, on_progress)
        temporary.chmod(0o755)
        if folder.exists():
            folder.rename(temporary / "damaged")
            shutil.rmtree(temporary / "damaged")
        temporary.rename(folder)
        sync_folder(folder.parent)
    except OSError as error:
        raise UserError(
            "a cache folder with space to write to",
            f"{folder.parent}: {error.strerror}",
            "Make space, or name another one as `cache` under [data].",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write(source: Source, contents: Contents, folder: Path, on_progress: OnProgress | None) -> None:
    target_shape = contents.input_shape[:2] if source.kind == "masks" else ()
    target_dtype = np.dtype(np.uint8 if source.kind == "masks" else np.int32)
    with open(folder / "inputs.npy", "wb") as first, open(folder / "targets.npy", "wb") as second:
        inputs, targets = Digested(first), Digested(second)
        _write_header(inputs, (contents.count, *contents.input_shape), contents.dtype)
        _write_header(targets, (contents.count, *target_shape), target_dtype)
        for done, (image, target) in enumerate(source.rows(), start=1):
            inputs.write(np.ascontiguousarray(image, contents.dtype).data)
            targets.write(np.ascontiguousarray(target, target_dtype).data)
            if on_progress is not None:
                on_progress(done, contents.count)
        for stream in (first, second):
            stream.flush()
            os.fsync(stream.fileno())
    meta = {
        "schema_version": PREPARED_SCHEMA,
        "source": source.identity,
        "fingerprint": source.fingerprint,
        "kind": source.kind,
        "count": contents.count,
        "input_shape": contents.input_shape,
        "dtype": contents.dtype.str,
        "scale": contents.scale,
        "ignore": contents.ignore,
        "class_names": source.class_names(),
        "given": contents.given,
        "names": contents.names,
        "arrays": {"inputs.npy": inputs.hexdigest(), "targets.npy": targets.hexdigest()},
    }
    write_atomically(folder / "meta.json", sealed(json.dumps(meta), indent=None) + "\n")


def _write_header(stream: Digested, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    description = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, description)  # type: ignore[arg-type]


def _bytes(kind: Kind, contents: Contents) -> int:
    pixels = contents.input_shape[0] * contents.input_shape[1]
    one = pixels * contents.input_shape[2] * contents.dtype.itemsize + (pixels if kind == "masks" else 4)
    return contents.count * one + 1_000_000


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{units.size(needed)} of free disk space for the prepared data set",
            f"{units.size(free)} in {folder}",
            "Make space, name another folder as `cache`, or choose a smaller `image_size` under [data].",
        )
