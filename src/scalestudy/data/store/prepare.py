"""Decode a source once, into rows on disk that all workers of a node share."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from scalestudy.config.settings import DataSettings, LaunchSettings
from scalestudy.data.sources.base import Contents, Downloading, Source, digest, findings_of, silently
from scalestudy.data.sources.custom import CustomSource
from scalestudy.data.sources.files import LeftOut
from scalestudy.data.sources.locate import cache_folder, find_source, folder_of
from scalestudy.data.sources.registry import Kind
from scalestudy.data.store.prepared import PREPARED_SCHEMA, Prepared, Storage
from scalestudy.data.store.write import OnProgress, bytes_of, locked, new_folder, write_set
from scalestudy.hardware.memory import memory_limit
from scalestudy.util import units
from scalestudy.util.errors import UserError

_TASKS = {"masks": ', such as task = "unet"', "classes": ', such as task = "cnn"'}
_HOLDS = {
    "masks": ("images with masks", "Name a source with masks (a folder with images/ and masks/)"),
    "classes": ("images with one class each", "Name a source with classes (one folder for each class)"),
    "custom": ("what read(data) of a Python file gives", "Define `read(data)` in the task file"),
}
AT_WORK = 12
"""Maximum number of samples in memory while a set is prepared."""
_NO_CONTENT = {"source", "read", "image_size", "seed", "storage", "cache", "validation", "folds", "fold"}
"""Keys of [data] that are part of the source's identity, or do not change the stored data."""


def chosen(storage: Literal["auto", "arrays", "encoded"], needed: int, cache: Path) -> Storage:
    """Choose the storage of a new set from `needed`, the bytes of its arrays.

    "auto" means arrays, unless they exceed the memory limit of this process or the free disk space of
    `cache`. The folder `cache` need not exist.
    """
    if storage != "auto":
        return storage
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    return "arrays" if needed <= min(memory_limit(), shutil.disk_usage(existing).free) else "encoded"


@dataclass(frozen=True)
class PlannedSet:
    """A data set, prepared or not: its settings, its source, and its folder for each possible storage."""

    data: DataSettings
    base: Path
    source: Source
    folders: dict[Storage, Path]
    """Arrays come first for "auto"."""

    @property
    def _cache(self) -> Path:
        return next(iter(self.folders.values())).parent

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Files that `prepare` would skip. No image is read."""
        return findings_of(self.source).left_out

    def prepared(self) -> Prepared | None:
        """Return the set if `prepare` has made it, else None. Writes nothing."""
        found = map(Prepared.find, self.folders.values())
        return next((ready for ready in found if ready is not None), None)

    def predicted_bytes(self) -> tuple[int, Storage]:
        """Predict the size and storage of the set from image headers, without decoding.

        Returns:
            Bytes of the set as arrays, and the storage (encoded rows take less). The size is 0 for data that
            a task reads itself, since it is unknown.

        Raises:
            UserError: If its images do not fit into one array.
        """
        if self.source.kind == "custom":
            return 0, "arrays"
        needed = _needed(self.source, self.source.contents())
        return needed, chosen(self.data.storage, needed, self._cache)

    def fetch(self, downloading: Downloading = silently) -> None:
        """Download the files of a public data set, unless it is already prepared.

        Raises:
            UserError: If it cannot be downloaded.
        """
        if self.prepared() is None:
            _fetch(self.source, downloading)

    def prepare(
        self, on_progress: OnProgress | None = None, within: float = LaunchSettings().progress_timeout
    ) -> Prepared:
        """Prepare the set, or return it at once if it is already prepared.

        Args:
            on_progress: Called with (samples done, total samples) while preparing.
            within: Maximum seconds between two samples of a user's `read`.

        Raises:
            UserError: If the source is damaged (the message names the file), or if the disk is full. No
                partial folder is left.
        """
        ready, source = self.prepared(), self.source
        if ready is not None:
            return ready
        _fetch(source, silently)
        contents = None if isinstance(source, CustomSource) else source.contents()
        needed = _needed(source, contents) if contents is not None else 0
        storage = chosen(self.data.storage, needed, self._cache) if contents is not None else "arrays"
        folder = self.folders[storage]
        with locked(folder) as alone:
            ready = Prepared.find(folder)
            if ready is not None:  # another process finished it while this one waited for the lock
                return ready
            with new_folder(folder, lambda: Prepared.find(folder) is not None, alone=alone) as temporary:
                if storage == "arrays":  # the size of encoded rows is not known in advance
                    _require_space(folder.parent, needed)
                if contents is not None:
                    write_set(source, contents, temporary, on_progress, storage)
                elif isinstance(source, CustomSource):
                    source.write(temporary, on_progress, within)
                if find_source(self.data, base=self.base).fingerprint != source.fingerprint:
                    raise UserError(
                        "a data set that does not change while it is prepared",
                        f"{source.identity}, in which files were added, removed or changed",
                        "Run again when nothing changes it any more.",
                    )
            return Prepared.open(folder)


def prepare(
    data: DataSettings, *, task_kind: Kind | None = None, base: Path = Path("."), **how: Any
) -> Prepared:
    """Prepare a data set: `PlannedSet.prepare` of `find_set`."""
    return find_set(data, task_kind=task_kind, base=base).prepare(**how)


def find_prepared(
    data: DataSettings, *, task_kind: Kind | None = None, base: Path = Path(".")
) -> Prepared | None:
    """Return a data set if it is prepared, else None: `PlannedSet.prepared` of `find_set`."""
    return find_set(data, task_kind=task_kind, base=base).prepared()


def _needed(source: Source, contents: Contents) -> int:
    """Return the bytes of the set's arrays.

    Raises:
        UserError: If the samples that are decoded in parallel do not fit into memory.
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


def find_set(data: DataSettings, *, task_kind: Kind | None = None, base: Path = Path(".")) -> PlannedSet:
    """Find the source of a data set, and the folders that `PlannedSet.prepare` would make. No image is read.

    A kind of data other than `task_kind` is refused. Relative paths begin at `base`, the folder of the study
    file.

    Raises:
        UserError: If the source is missing or of the wrong kind, or its layout is ambiguous.
    """
    source = find_source(data, base=base)
    if task_kind is not None and source.kind != task_kind:
        needed, action = _HOLDS[task_kind]
        raise UserError(
            f"{needed}, which the task needs",
            f"{data.source}, which holds {_HOLDS[source.kind][0]}",
            f"{action}, or choose a task for {_HOLDS[source.kind][0]}{_TASKS.get(source.kind, '')}.",
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
    keys = data.model_dump(mode="json", exclude=_NO_CONTENT, exclude_defaults=True)
    identity = (
        PREPARED_SCHEMA,
        source.kind,
        source.identity,
        source.fingerprint,
        data.image_size,
        *sorted(keys.items()),
    )
    label = re.sub(r"[^A-Za-z0-9._-]+", "-", source.label)[:40]
    storages: tuple[Storage, ...] = ("arrays", "encoded") if data.storage == "auto" else (data.storage,)
    digests = {
        storage: digest(*identity, *(() if storage == "arrays" else (storage,))) for storage in storages
    }
    folders = {storage: cache / f"{label}-{text[:16]}" for storage, text in digests.items()}
    return PlannedSet(data, base, source, folders)


def _fetch(source: Source, downloading: Downloading) -> None:
    """Download a source's files; most sources have no `fetch`."""
    if hasattr(source, "fetch"):
        source.fetch(downloading)
