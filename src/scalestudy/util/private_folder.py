"""The folder on this machine that only this user can access."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scalestudy.util.errors import RunError

NAME = "scalestudy"
RUNTIME = Path("/run/user")
"""Folder in which systemd creates one for each user who is logged in."""


def private_folder() -> Path:
    """Return this user's private folder, created if it does not exist.

    The candidates are in the user's runtime folder (XDG_RUNTIME_DIR), in the folder of temporary files, and
    in the user's cache. The first that only this user can access is returned; folders created by others are
    skipped.

    Raises:
        RunError: If there is none.
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
    """Return why a file or folder is not private to this user; "" if it is.

    Args:
        found: Result of `os.lstat` for its path, or of `os.fstat` once it is open.
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
    # Anyone may create entries in it, so the name has the user, and the owner is checked.
    temporary = Path(tempfile.gettempdir()).absolute()
    if _fixed(temporary):
        yield temporary / f"{NAME}-{user}"
    # XDG's specification: a path that is not absolute is ignored.
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        cache = Path(named)
    else:
        cache = Path.home() / ".cache"
    # Machines may share a home, but not the cores, GPUs and ports that the locks are for.
    yield cache / NAME / f"on-{os.uname().nodename}"


def _trusted(path: Path) -> bool:
    try:
        return not foreign(os.lstat(path))
    except OSError:
        return False


def _fixed(folder: Path) -> bool:
    """Whether only their owners and root can remove or rename the entries of a folder."""
    try:
        found = os.stat(folder)
    except OSError:
        return False
    if found.st_uid not in (0, os.geteuid()):
        return False
    others_may_write = found.st_mode & 0o022
    is_sticky = found.st_mode & stat.S_ISVTX
    return not others_may_write or bool(is_sticky)


def _made(path: Path) -> str:
    """Create a folder with mode 0700; return why it is not private to this user, or ""."""
    try:
        path.parent.mkdir(
            mode=0o700,
            parents=True,
            exist_ok=True,
        )
        path.mkdir(mode=0o700, exist_ok=True)
        # It may have been there: what counts is whose it is now.
        return foreign(os.lstat(path))
    except OSError as error:
        return error.strerror or str(error)
