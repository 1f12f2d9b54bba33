"""What was found sound in a large study, kept in the user's cache: the next look need not parse it again.

Nothing is believed that cannot be seen to be unchanged: a record counts as long as its file's identity
(device, inode, size, time of change) is that of the file that was read, and a point's runs as long as its
folder's is. What is younger than `SETTLED` seconds is not kept, since the clock of a file system may not tell
two writes apart. The cache may be removed at any time; `scalestudy verify` never uses it; nothing is written
to the study's folder.
"""

import contextlib
import gc
import hashlib
import os
import pickle
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from scalestudy.files import open_regular, replacing
from scalestudy.private import foreign
from scalestudy.study.records import EpochRecord, JobRecord, RankRecord, Result
from scalestudy.study.run_folder import RunFolder

WORTH = 500
"""Points from which on a study is worth it: fewer are read in a moment."""
LARGE = 2**20
"""Bytes of a study.json, likewise."""
SETTLED = 2.0
FORM = 2
"""Of the cache's content; another one is not read."""
MODULES = ("scalestudy.study.", "scalestudy.launch.", "scalestudy.analysis.records")
OTHERS = (("builtins", "set"), ("array", "array"), ("array", "_array_reconstructor"))


class Identity(NamedTuple):
    """What changes when a file is replaced or written to, or a folder gains or loses a name."""

    device: int
    inode: int
    size: int
    changed: int
    """Nanoseconds of Unix time."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished run that was found sound.

    Attributes:
        run: Name of its folder, "run-1".
        seen: Identities of the point's folder, and of the run's `SEEN` files; None for one that is not there.
        result: Its result.
        job: The job it was given to.
    """

    run: str
    seen: tuple[Identity | None, ...]
    result: Result
    job: JobRecord | None


SEEN = ("result.json", "point.json")
"""Records of a finished run that decide. Its job's was written before it began."""


@dataclass
class Remembered:
    """What is known of a study from earlier looks: finished runs by point, and the study's own record."""

    runs: dict[str, Finished] = field(default_factory=dict)
    study: tuple[Identity, Any] | None = None

    def finished(self, folder: Path, point: str) -> Finished | None:
        """The finished run of a point, if nothing of it has changed since it was read."""
        known = self.runs.get(point)
        return known if known is not None and _seen(folder, point, known.run) == known.seen else None

    def add(self, folder: Path, point: str, run: RunFolder, result: Result, job: JobRecord | None) -> None:
        """Remember a run that was just found finished and sound, with all runs of its point."""
        seen = _seen(folder, point, run.path.name)
        if all(settled(each) for each in seen if each is not None):
            self.runs[point] = Finished(run.path.name, seen, result, job)


def identity(path: str | Path) -> Identity | None:
    """Of a file or folder; None without one."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Identity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def recall(folder: Path) -> Remembered:
    """What is remembered of the study in a folder; nothing if there is no cache to go by."""
    file = cache_file(folder)
    seen = identity(file)
    if _last is not None and _last[:2] == (file, seen):
        return _last[2]
    known = load(file)
    if not isinstance(known, Remembered):
        return Remembered()
    _remember_here(file, seen, known)
    return known


def remember_study(folder: Path, seen: Identity, record: Any) -> None:
    """Keep the record of a large study beside its runs, for the next process."""
    if settled(seen):
        known = recall(folder)
        known.study = (seen, record)
        keep(folder, known)


def keep(folder: Path, known: Remembered) -> None:
    """Keep it for the next look; a cache that cannot be written to is gone without."""
    file = cache_file(folder)
    if dump(file, known):
        _remember_here(file, identity(file), known)


def load(file: Path) -> Any:
    """What `dump` wrote there; None where nothing is to be gone by. Only records of ours are made of it."""
    try:
        if foreign(os.lstat(file)) or foreign(os.lstat(file.parent)):
            return None
        with open_regular(file) as stream, uncollected():
            form, known = _Reader(stream).load()
    except Exception:  # whatever is wrong with a cache, all can be read anew
        return None
    return known if form == _form() else None


def dump(file: Path, known: Any) -> bool:
    """Write a cache for the user alone; whether that could be done."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(file, durable=False) as stream:
            pickle.dump((_form(), known), stream, protocol=5)
        file.chmod(0o600)
        return True
    return False


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Make many objects that stay without the garbage collector's looking through them again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def shared(models: Iterable[Any], *fields: str) -> None:
    """Have models share equal values of these fields: they take less room, and are read faster."""
    known: dict[str, Any] = {}
    for model in models:
        for name in fields:
            value = getattr(model, name)
            model.__dict__[name] = known.setdefault(f"{name} {value!r}", value)


def _seen(folder: Path, point: str, run: str) -> tuple[Identity | None, ...]:
    parent = f"{folder}/points/{point}"
    return (identity(parent), *(identity(f"{parent}/{run}/{name}") for name in SEEN))


def cache_file(folder: Path, ending: str = ".pickle") -> Path:
    """Where the cache of the study in a folder lies."""
    import platformdirs

    digest = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
    return Path(platformdirs.user_cache_dir("scalestudy", appauthor=False)) / "studies" / f"{digest}{ending}"


def _form() -> tuple[Any, ...]:
    """What a cache was written by: another version may know other fields."""
    from scalestudy import __version__
    from scalestudy.study.point import Point

    kinds = (Result, Point, EpochRecord, RankRecord)
    return FORM, __version__, *(tuple(kind.model_fields) for kind in kinds)


def settled(seen: Identity) -> bool:
    """Whether what was changed then can be told from what is written now."""
    return time.time() - seen.changed / 1e9 > SETTLED


_last: tuple[Path, Identity | None, Remembered] | None = None
"""The cache that this process read last, so that it is read once."""


def _remember_here(file: Path, seen: Identity | None, known: Remembered) -> None:
    global _last  # noqa: PLW0603
    _last = (file, seen, known)


class _Reader(pickle.Unpickler):
    """Makes nothing but our own records out of a cache."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in OTHERS:
            return super().find_class(module, name)
        if module.startswith(MODULES) and "." not in name:  # a dot reaches into what a module imports
            found = super().find_class(module, name)
            if getattr(found, "__module__", "") == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name}")
