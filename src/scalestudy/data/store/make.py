"""Making a folder beside its place, and putting it there whole: a kill leaves no half of one."""

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


@contextmanager
def new_folder(place: Path, is_whole: Callable[[], bool], *, alone: bool) -> Iterator[Path]:
    """A folder to fill, which comes to `place` at the end of the block, instead of what is not whole there.

    Args:
        place: Where it belongs.
        is_whole: Whether what is there now is whole.
        alone: Whether the lock is held: only then what killed processes have left is cleared.

    Raises:
        UserError: the cache folder cannot take it.
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
            # Where there are no locks, another process may have put it there: that stays, with its splits.
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
