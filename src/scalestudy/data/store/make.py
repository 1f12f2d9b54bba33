"""Making a prepared set beside its place, and putting it there whole: a kill leaves no half of one."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scalestudy.data.sources.base import Contents, Source
from scalestudy.data.sources.custom import CustomSource
from scalestudy.data.store.prepared import Prepared, Storage
from scalestudy.data.store.write import OnProgress, bytes_of, write_set
from scalestudy.util import units
from scalestudy.util.errors import UserError
from scalestudy.util.files import sync_folder
from scalestudy.util.locks import take

_MARK = ".tmp-"


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """The lock of a set, waited for; gives whether there is one (some file systems have none).

    Raises:
        UserError: the cache folder cannot be made or written to.
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


def make(
    source: Source | CustomSource,
    contents: Contents | None,
    folder: Path,
    unchanged: Callable[[], bool],
    on_progress: OnProgress | None,
    *,
    storage: Storage = "arrays",
    alone: bool,
) -> None:
    """Write the rows into a folder beside `folder` and rename it.

    Args:
        source: What is decoded.
        contents: What it has announced; None of one that writes its set itself.
        folder: Where the set belongs.
        unchanged: Asked at the end whether the source is still what was listed.
        on_progress: Called with (samples done, samples in all).
        storage: How rows are kept.
        alone: Whether the lock is held; without locks, what another process is writing is left alone.

    Raises:
        UserError: the source is damaged or has changed, or the cache folder cannot take it.
    """
    temporary = None
    try:
        if alone:  # what killed processes have left
            for leftover in folder.parent.glob(f"{folder.name}{_MARK}*"):
                shutil.rmtree(leftover, ignore_errors=True)
        if contents is not None and storage == "arrays":  # what encoded rows take is known once written
            _require_space(folder.parent, bytes_of(source.kind, contents))
        temporary = Path(tempfile.mkdtemp(prefix=f"{folder.name}{_MARK}", dir=folder.parent))
        if isinstance(source, CustomSource):
            source.write(temporary, on_progress)
        elif contents is not None:
            write_set(source, contents, temporary, on_progress, storage)
        if not unchanged():
            raise UserError(
                "a data set that stays as it is while it is prepared",
                f"{source.identity}, in which files were added, removed or changed meanwhile",
                "Run again once nothing changes it any more.",
            )
        temporary.chmod(0o755)
        _put(temporary, folder)
    except OSError as error:
        raise _unwritable(
            "a cache folder that stays, can be written to and has space", folder, error
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _put(temporary: Path, folder: Path) -> None:
    """Put the new set in its place, and what is there out of it if that is damaged."""
    if folder.exists() and Prepared.find(folder) is None:
        folder.rename(temporary / "damaged")
        shutil.rmtree(temporary / "damaged")
    try:
        temporary.rename(folder)
        sync_folder(folder.parent)
    except OSError:
        # Where there are no locks, another process may have put it there: that stays, with its splits.
        if Prepared.find(folder) is None:
            raise


def _unwritable(expected: str, folder: Path, error: OSError) -> UserError:
    return UserError(
        expected,
        f"{folder.parent}: {error.strerror}",
        "Make space there, or name another one as `cache` under [data].",
    )


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{units.size(needed)} of free disk space for the prepared data set",
            f"{units.size(free)} in {folder}",
            "Make space, name another folder as `cache`, or choose a smaller `image_size` under [data].",
        )
