"""A folder of this user on this machine, in which no other can read, write, plant or redirect anything."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scalestudy.util.errors import RunError

NAME = "scalestudy"
RUNTIME = Path("/run/user")
"""Where systemd makes a folder for each user who is logged in."""


def private_folder() -> Path:
    """The first of these that is ours alone, made if need be; what others have planted is passed over.

    In the user's runtime folder (XDG_RUNTIME_DIR), in the folder of temporary files, in the user's cache.

    Raises:
        RunError: If none is.
    """
    wrong = []
    for path in _candidates():
        reason = _made(path)
        if not reason:
            return path
        wrong.append(f"{path}: {reason}")
    raise RunError(
        "a private folder on this machine for locks",
        "; ".join(wrong),
        "Set XDG_RUNTIME_DIR to a folder of your own with mode 0700.",
    )


def foreign(found: os.stat_result) -> str:
    """Why a file or folder cannot be trusted to be this user's alone, or "" if it can.

    Args:
        found: What `os.lstat` says of its path, or `os.fstat` of it once it is open.
    """
    if stat.S_ISLNK(found.st_mode):
        return "a symbolic link"
    if found.st_uid != os.geteuid():
        return f"owned by user {found.st_uid}"
    if found.st_mode & 0o077:
        return f"open to others (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def _candidates() -> Iterator[Path]:
    user = os.geteuid()
    for base in (os.environ.get("XDG_RUNTIME_DIR", ""), str(RUNTIME / str(user))):
        if os.path.isabs(base) and _trusted(Path(base)):
            yield Path(base) / NAME
    temporary = Path(tempfile.gettempdir()).absolute()
    if _fixed(temporary):
        yield temporary / f"{NAME}-{user}"
    cache = os.environ.get("XDG_CACHE_HOME", "")
    yield (
        (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / NAME / f"on-{os.uname().nodename}"
    )


def _trusted(path: Path) -> bool:
    try:
        return not foreign(os.lstat(path))
    except OSError:
        return False


def _fixed(folder: Path) -> bool:
    """Whether nobody but the owners of what is in a folder, and root, can take it away or rename it."""
    try:
        found = os.stat(folder)
    except OSError:
        return False
    ours = found.st_uid in (0, os.geteuid())
    return ours and (not found.st_mode & 0o022 or bool(found.st_mode & stat.S_ISVTX))


def _made(path: Path) -> str:
    """Make a folder with mode 0700. Returns why it is not ours alone, or ""."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        return foreign(os.lstat(path))
    except OSError as error:
        return error.strerror or str(error)
