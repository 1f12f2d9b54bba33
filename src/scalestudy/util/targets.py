"""Files and folders that a user names for a command to write: not over its inputs, not among the records of a study."""

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from scalestudy.util.errors import UserError
from scalestudy.util.files import without_following, write_atomically

REPORT = "report"
"""The only folder inside a study that commands may write to."""


def write_named(path: Path, content: str | bytes) -> None:
    """Write a file that a user named, with its folders.

    A device or a pipe is written to, not replaced.

    Raises:
        OSError: If it cannot be written; a regular file is then unchanged.
        UnicodeEncodeError: If UTF-8 cannot encode the text; likewise.
        UserError: If it is a link, or behind another user's link; see `refuse_link`.
    """
    refuse_link(path)
    ours = not _of_the_system(path)
    if ours and (path.is_file() or not path.exists()):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Replaces a link that was made meanwhile.
        write_atomically(path, content)
        return
    # The system's own are links: /dev/stdout leads to /proc/self/fd/1.
    opener = without_following if ours else None
    try:
        with open(path, "wb", opener=opener) as file:
            file.write(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def refuse_link(target: Path) -> None:
    """Refuse to write to a link, or into a folder behind a link that another user has made for everybody.

    Links such as /dev/stdout are the system's. Links to folders are followed, but as by Linux with
    fs.protected_symlinks = 1: in a sticky folder that everybody can write to, such as /tmp, only those of
    this user and of the folder's owner. See proc(5).

    Raises:
        UserError: Names the link.
    """
    if _of_the_system(target):
        return
    if target.is_symlink():
        received = f"{target}, a symbolic link to {os.readlink(target)}"
        raise UserError(
            "a file to write to, not a link",
            received,
            "Name the file itself, or remove the link.",
        )
    # Checked here, too, since fs.protected_symlinks may be off.
    for link in _links_to(target.absolute().parent):
        found, around = os.lstat(link), os.stat(link.parent)
        shared = around.st_mode & stat.S_ISVTX and around.st_mode & stat.S_IWOTH
        if shared and found.st_uid not in (os.geteuid(), around.st_uid):
            raise UserError(
                "a target that is not behind another user's link",
                f"{target}: user {found.st_uid} has made {link}, a symbolic link to {os.readlink(link)}",
                "Name the folder itself.",
            )


def _of_the_system(path: Path) -> bool:
    # Not resolved: /dev/stdout may lead to any file that the shell has opened.
    place = os.path.abspath(path)
    return place.startswith(
        ("/dev/std", "/dev/fd/", "/dev/null", "/dev/full", "/dev/tty", "/proc/self/fd/")
    )


def _links_to(folder: Path) -> Iterator[Path]:
    """Yield the links on the way to a folder, also those that other links lead to."""
    seen: set[Path] = set()
    todo = [folder]
    while todo:
        path = todo.pop()
        for part in (path, *path.parents):
            if part in seen or not part.is_symlink():
                continue
            seen.add(part)
            yield part
            leads_to = part.parent / os.readlink(part)
            todo.append(Path(os.path.normpath(leads_to)))


def refuse_target(
    target: Path | None,
    inputs: Iterable[str | Path | None] = (),
    *,
    force: bool = False,
) -> None:
    """Refuse to write to one of `inputs`, to a study file or site profile, or among a study's records.

    A place where nothing can be written is refused, too, before the work whose result it is for.

    Args:
        target: File or folder to write; None is accepted.
        inputs: Files and folders that the command reads, as named by the user; None is ignored.
        force: Whether an existing file may be replaced.

    Raises:
        UserError: Names the target and the reason.
    """
    if target is None:
        return
    place = os.path.realpath(target)
    what = ""
    for path in inputs:
        if path is not None and os.path.realpath(path) == place:
            what = "which the command reads"
    if not what and target.suffix == ".toml" and target.exists():
        what = "a study file or a site profile"
    if what:
        raise UserError(
            "a target without data that would be lost",
            f"{target}, {what}",
            "Name another with --out.",
        )
    refuse_inside_study(target)
    refuse_old(target, force=force)
    refuse_new_at_root(target)
    if not target.is_dir():
        refuse_link(target)
    else:
        refuse_link(target / "file")
    _refuse_unwritable(target)


def _refuse_unwritable(target: Path) -> None:
    place = Path(os.path.realpath(target))
    is_device_or_pipe = place.exists() and not place.is_dir() and not place.is_file()
    if _of_the_system(target) or is_device_or_pipe:
        return
    folder = place if place.is_dir() else place.parent
    # A file on the way stays: no folder can be made below it.
    while not os.path.lexists(folder):
        folder = folder.parent
    # Tried, since permissions do not tell of a read-only file system or a full quota.
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        what = f"{target}: {error.strerror}"
        raise UserError(
            "a target that can be written",
            what,
            "Name another with --out.",
        ) from error


def refuse_new_at_root(target: Path) -> None:
    """Refuse to create a folder at `/` on the way to a target: a misspelled name, or a disk not mounted.

    Raises:
        UserError: Names the folder.
    """
    place = Path(os.path.realpath(target))
    missing = [folder for folder in place.parents if not folder.exists()]
    if missing and missing[-1].parent == Path(place.anchor):
        raise UserError(
            f"a target in a folder that exists: {missing[-1]}",
            f"{target}, and there is none",
            "Correct the name, mount that file system, or create the folder first.",
        )


def refuse_old(target: Path, *, force: bool) -> None:
    """Refuse to replace an existing file unless `force` is set.

    Raises:
        UserError: Names the file.
    """
    if target.is_file() and not force and not _of_the_system(target):
        action = "Name another, or add --force to overwrite it."
        raise UserError("a new file", f"{target}, which exists", action)


def refuse_inside_study(target: Path) -> None:
    """Refuse to write into the folder of a study, except its `report`; follows links.

    Raises:
        UserError: Names the target and the study.
    """
    place = Path(os.path.realpath(target))
    for folder in (place, *place.parents):
        is_study = os.path.lexists(folder / "study.json")
        if is_study and place.relative_to(folder).parts[:1] != (REPORT,):
            raise UserError(
                "a target outside the records of a study",
                f"{target}, in the study {folder}",
                f"Name another with --out, or one in {folder / REPORT}.",
            )
