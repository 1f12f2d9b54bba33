"""Decode a source once, to integer arrays on disk that all workers of a node share."""

import os
import re
from dataclasses import replace
from pathlib import Path

import platformdirs

from scalestudy.data import left_out
from scalestudy.data.kinds import Kind
from scalestudy.data.locate import expand, find_source, folder_of
from scalestudy.data.make import locked, make
from scalestudy.data.prepared import PREPARED_SCHEMA, Prepared
from scalestudy.data.source import Size, Source, digest
from scalestudy.data.write_set import OnProgress, bytes_of, note_left_out
from scalestudy.errors import UserError

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
    if ready is None:
        with locked(folder) as alone:
            # Another process may have finished it while this one waited for the lock.
            ready = _opened(folder)
            if ready is None:

                def unchanged() -> bool:
                    now = find_source(source, base=base, image_size=image_size, seed=seed)
                    return now.fingerprint == found.fingerprint

                make(found, folder, unchanged, on_progress, alone=alone)
                ready = Prepared.open(folder)
    return _with_left_out(ready, found)


def look(
    source: str | Path,
    *,
    task_kind: Kind | None = None,
    image_size: Size | None = None,
    cache: str | Path | None = None,
    seed: int = 0,
    base: Path = Path("."),
) -> tuple[left_out.LeftOut, ...]:
    """What `prepare` with these arguments would leave out: names are listed, only an .npz file is opened.

    Raises:
        UserError: the source is missing, or of the wrong kind, or what lies in it cannot be told apart.
    """
    return left_out.of_source(_place(source, task_kind, image_size, cache, seed, base)[0])


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
    found, folder = _place(source, task_kind, image_size, cache, seed, base)
    ready = _opened(folder)
    return replace(ready, left_out=left_out.of_source(found)) if ready else None


def prepared_bytes(
    source: str | Path, *, image_size: Size | None = None, seed: int = 0, base: Path = Path(".")
) -> int:
    """Bytes that `prepare` with these arguments would write: headers are looked at, nothing is decoded.

    Raises:
        UserError: the source is missing, or cannot become one array.
    """
    found = find_source(source, base=base, image_size=image_size, seed=seed)
    return bytes_of(found.kind, found.contents())


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
    _refuse_inside(store, source, base)
    identity = digest(PREPARED_SCHEMA, found.kind, found.identity, found.fingerprint, image_size)
    folder = store / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', found.label)[:40]}-{identity[:16]}"
    return found, folder


def _opened(folder: Path) -> Prepared | None:
    """The prepared data set, or None when it is missing or damaged (it is then made anew)."""
    try:
        return Prepared.open(folder)
    except UserError:
        return None


def _with_left_out(ready: Prepared, source: Source) -> Prepared:
    """The set with what its source leaves out now: files that are left out may come and go."""
    now = left_out.of_source(source)
    if now != ready.left_out:
        note_left_out(ready.path, now)
    return replace(ready, left_out=now)


def _refuse_inside(store: Path, source: str | Path, base: Path) -> None:
    """A cache inside a folder of images would itself be taken for images, or be carried away with them."""
    root = folder_of(source, base)
    if root is not None and Path(os.path.realpath(store)).is_relative_to(root):
        raise UserError(
            "a cache folder outside the source",
            f"the cache {store} in {root}",
            "Name another one as `cache` under [data].",
        )
