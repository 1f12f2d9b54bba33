"""Decode a source once, to rows on disk that all workers of a node share."""

import os
import re
import shutil
from pathlib import Path
from typing import Literal

from scalestudy.data.sources import faults
from scalestudy.data.sources.base import Contents, Source, digest, findings_of
from scalestudy.data.sources.custom import CustomSource
from scalestudy.data.sources.files import LeftOut
from scalestudy.data.sources.locate import cache_folder, find_source, folder_of
from scalestudy.data.sources.public.download import Downloading, silently
from scalestudy.data.sources.registry import Kind
from scalestudy.data.store.make import locked, new_folder
from scalestudy.data.store.prepared import PREPARED_SCHEMA, Prepared, Storage
from scalestudy.data.store.write import OnProgress, bytes_of, write_set
from scalestudy.hardware.memory import memory_limit
from scalestudy.study.settings import DataSettings
from scalestudy.util import units
from scalestudy.util.errors import UserError

_HOLDS = {
    "masks": ("images with masks", "Name a source with masks (a folder with images/ and masks/)"),
    "classes": ("images with one class each", "Name a source with classes (one folder for each class)"),
    "custom": ("what read(data) of a Python file gives", "Define `read(data)` in the task file"),
}
AT_WORK = 12
"""Most samples that are in memory at once while a set is made."""
_NO_CONTENT = {"source", "read", "image_size", "seed", "storage", "cache", "validation", "folds", "fold"}
"""Keys of [data] that a source's identity tells, or that do not change what is stored."""


def chosen(storage: Literal["auto", "arrays", "encoded"], needed: int, cache: Path) -> Storage:
    """What a set that is not there yet is made as, from the bytes that its arrays need.

    "auto" chooses arrays, unless they are larger than the memory that this process may use, or than the free
    space of the disk of `cache`, which need not exist yet.
    """
    if storage != "auto":
        return storage
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    return "arrays" if needed <= min(memory_limit(), shutil.disk_usage(existing).free) else "encoded"


def prepare(
    data: DataSettings, *, task_kind: Kind | None = None, base: Path = Path("."),
    on_progress: OnProgress | None = None,
) -> Prepared:  # fmt: skip
    """Prepare a data set, or return at once when that was done before.

    Args:
        data: What is read and how: the section [data] of a study file, with a source.
        task_kind: What the task needs; another kind is refused.
        base: Folder that relative paths are seen from: the study file's.
        on_progress: Called with (samples done, samples in all) while preparing.

    Raises:
        UserError: the source is missing, of the wrong kind or damaged (the file is named), or the disk
            is full. Nothing half-written is left.
    """
    source, folders = _place(data, task_kind, base)
    ready = _first(folders)
    if ready is not None:
        return ready
    first = next(iter(folders.values()))
    refusals = first.with_name(f"{first.name}.refused.txt")
    with faults.listed(refusals):
        _fetch(source, silently)
        contents = None if isinstance(source, CustomSource) else source.contents()
    needed = _needed(source, contents) if contents is not None else 0
    storage = chosen(data.storage, needed, first.parent) if contents is not None else "arrays"
    folder = folders[storage]
    with locked(folder) as alone, faults.listed(refusals):
        ready = Prepared.find(folder)
        if ready is not None:  # another process has finished it while this one waited for the lock
            return ready
        with new_folder(folder, lambda: Prepared.find(folder) is not None, alone=alone) as temporary:
            if storage == "arrays":  # what encoded rows take is known once written
                _require_space(folder.parent, needed)
            if contents is not None:
                write_set(source, contents, temporary, on_progress, storage)
            elif isinstance(source, CustomSource):
                source.write(temporary, on_progress)
            if find_source(data, base=base).fingerprint != source.fingerprint:
                raise UserError(
                    "a data set that does not change while it is prepared",
                    f"{source.identity}, in which files were added, removed or changed",
                    "Run again when nothing changes it any more.",
                )
        return Prepared.open(folder)


def _needed(source: Source, contents: Contents) -> int:
    """Bytes of the set's arrays.

    Raises:
        UserError: the samples that are decoded side by side do not fit into the memory.
    """
    needed = bytes_of(source.kind, contents)
    height, width, channels = contents.input_shape
    if AT_WORK * height * width * channels * contents.dtype.itemsize > memory_limit():
        raise UserError(
            f"samples of which {AT_WORK} fit into {units.size(memory_limit())} of memory",
            f"{source.identity} of {height:,} x {width:,} x {channels} {contents.dtype}",
            "Choose a smaller `image_size` under [data], or cut images with `tile`.",
        )
    return needed


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{units.size(needed)} of free disk space for the prepared data set",
            f"{units.size(free)} in {folder}",
            "Free some space, set another `cache`, or choose a smaller `image_size` under [data].",
        )


def fetch(
    data: DataSettings, *, task_kind: Kind | None = None, base: Path = Path("."),
    downloading: Downloading = silently,
) -> None:  # fmt: skip
    """Have the files of a public data set here, unless `prepare` with these arguments needs none of them.

    Raises:
        UserError: the source is missing, of the wrong kind, or cannot be had.
    """
    source, folders = _place(data, task_kind, base)
    if _first(folders) is None:
        _fetch(source, downloading)


def look(data: DataSettings, *, task_kind: Kind | None = None, base: Path = Path(".")) -> tuple[LeftOut, ...]:
    """What `prepare` with these arguments would leave out: names are listed, only an .npz file is opened.

    Raises:
        UserError: the source is missing, or of the wrong kind, or what lies in it cannot be told apart.
    """
    return findings_of(_place(data, task_kind, base)[0]).left_out


def find_prepared(
    data: DataSettings, *, task_kind: Kind | None = None, base: Path = Path(".")
) -> Prepared | None:
    """The data set that `prepare` with these arguments has made, or None: nothing is decoded or written.

    Raises:
        UserError: the source is missing, or of the wrong kind.
    """
    return _first(_place(data, task_kind, base)[1])


def predicted_bytes(data: DataSettings, *, base: Path = Path(".")) -> tuple[int, Storage]:
    """What `prepare` with these arguments would make: headers are looked at, nothing is decoded.

    Returns:
        Bytes of the set as arrays, and how it would be kept (encoded, it takes less); 0 for what a task reads
        itself, which nobody knows ahead.

    Raises:
        UserError: the source is missing, or cannot become one array.
    """
    source = find_source(data, base=base)
    if source.kind == "custom":
        return 0, "arrays"
    needed = _needed(source, source.contents())
    return needed, chosen(data.storage, needed, cache_folder(data.cache, base))


def _place(data: DataSettings, task_kind: Kind | None, base: Path) -> tuple[Source, dict[Storage, Path]]:
    """The source, and the folders that it may be prepared in; of "auto" both, arrays first."""
    source = find_source(data, base=base)
    if task_kind is not None and source.kind != task_kind:
        needed, action = _HOLDS[task_kind]
        raise UserError(
            f"{needed}, which the task needs",
            f"{data.source}, which holds {_HOLDS[source.kind][0]}",
            f"{action}, or choose a task for {_HOLDS[source.kind][0]}.",
        )
    cache = cache_folder(data.cache, base)
    root = folder_of(str(data.source), base)
    # A cache inside a folder of images would itself be taken for images, or be carried away with them.
    if root is not None and Path(os.path.realpath(cache)).is_relative_to(root):
        raise UserError(
            "a cache folder outside the source",
            f"the cache {cache} in {root}",
            "Set another `cache` under [data].",
        )
    # Keys at their default are left out, so that a new key leaves the sets that are prepared where they are.
    keys = data.model_dump(mode="json", exclude=_NO_CONTENT, exclude_defaults=True)
    identity = (
        PREPARED_SCHEMA, source.kind, source.identity, source.fingerprint, data.image_size,
        *sorted(keys.items()),
    )  # fmt: skip
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", source.label)[:40]
    storages: tuple[Storage, ...] = ("arrays", "encoded") if data.storage == "auto" else (data.storage,)
    digests = {
        storage: digest(*identity, *(() if storage == "arrays" else (storage,))) for storage in storages
    }
    return source, {storage: cache / f"{label}-{text[:16]}" for storage, text in digests.items()}


def _first(folders: dict[Storage, Path]) -> Prepared | None:
    """The first of them that is prepared."""
    return next((ready for folder in folders.values() if (ready := Prepared.find(folder)) is not None), None)


def _fetch(source: Source, downloading: Downloading) -> None:
    """Most sources have nothing to fetch."""
    if hasattr(source, "fetch"):
        source.fetch(downloading)
