"""Fill a temporary folder and rename it when complete, so that a killed process leaves no partial folder."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from scalestudy.util.errors import UserError
from scalestudy.util.files import sync_folder
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

    Args:
        place: Final path.
        is_whole: Whether the folder at `place` is complete.
        alone: Whether the lock is held. Only then leftovers of killed processes are removed.

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
