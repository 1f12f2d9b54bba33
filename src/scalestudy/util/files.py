"""Write files atomically, so that neither a reader nor a kill or power failure ever sees half of one.

Commands write where the user names it: not over their inputs, and not among the records of a study.
"""

import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from scalestudy.util.errors import UserError


def write_atomically(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Replace the file `path` by one with this content (text as UTF-8).

    Args:
        path: The file; its folder exists.
        content: New content.
        durable: Whether the content must survive a power failure after the return. Not needed for files that
            are soon written again.

    Raises:
        OSError: If it cannot be written; `path` is unchanged, and no other file is left.
        UnicodeEncodeError: If UTF-8 cannot encode the text; likewise.
    """
    data = content.encode() if isinstance(content, str) else content
    with replacing(path, durable=durable) as file:
        file.write(data)


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
        write_atomically(path, content)  # replaces a link that was made meanwhile
        return
    opener = without_following if ours else None
    try:
        with open(path, "wb", opener=opener) as file:
            file.write(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def without_following(path: str, flags: int) -> int:
    """Open a file but no link, as the `opener` of `open`; raises OSError (ELOOP) for a link."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def make_inside(folder: Path) -> Path:
    """Create a folder inside one of ours unless it is there, and return it.

    Raises:
        OSError: If it cannot be created, or is a link, which would lead what is written elsewhere.
    """
    try:
        folder.mkdir()
    except FileExistsError:
        if folder.is_symlink():
            raise OSError(
                errno.ELOOP, "it is a symbolic link, which is not followed", str(folder)
            ) from None
    return folder


def touch(path: Path) -> None:
    """Create an empty file unless there is a file; raises OSError, also for a link."""
    os.close(without_following(str(path), os.O_WRONLY | os.O_CREAT))


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
            todo.append(Path(os.path.normpath(part.parent / os.readlink(part))))


@contextmanager
def replacing(
    path: Path, beside: Path | None = None, *, durable: bool = True
) -> Iterator[BinaryIO]:
    """Yield a temporary file beside `path` that replaces it when the block ends without an error.

    Args:
        path: The file to replace; its folder exists.
        beside: Path of the temporary file, for callers that must find it after a kill; None for a new one.
        durable: Whether the content must survive a power failure after the block.

    Raises:
        OSError: If it cannot be written. After any error, `path` is unchanged, and no other file is left.
    """
    temporary = beside or path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    if beside is not None:
        beside.unlink(
            missing_ok=True
        )  # a killed writer's, perhaps of another user of the same group
    # Unlike mkstemp's, with the permissions of any new file: those that the umask and the folder give.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(handle, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if durable:
            sync_folder(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if (
            isinstance(error, OSError) and not error.filename
        ):  # a write to a full disk names no file
            error.filename = str(path)
        raise


def contents(path: Path, most: int = 2**28) -> bytes:
    """Read a regular file. A pipe or a device, on which reading could block forever, is refused.

    Args:
        path: The file.
        most: Maximum size in bytes; by default more than any record has.

    Raises:
        OSError: If it cannot be read, is no regular file, or is longer.
    """
    with open_regular(path, most) as file:
        return file.read()


@contextmanager
def open_regular(path: Path, most: int = 2**28) -> Iterator[BufferedReader]:
    """Open a regular file under the conditions of `contents`, to read it in parts."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        if found.st_size > most:
            raise OSError(
                errno.EFBIG,
                f"its {found.st_size} bytes are more than {most}",
                str(path),
            )
        with open(handle, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(handle)


def append_line(path: Path, line: str) -> None:
    """Append a line in a single write, so that a kill can leave only the last line incomplete.

    An incomplete last line, left by a killed writer, is ended first. A power failure may lose the line.
    """
    with open(path, "ab+", buffering=0, opener=without_following) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
        torn = end > 0 and file.read(1) != b"\n"
        text = f"\n{line}\n" if torn else f"{line}\n"
        try:
            file.write(text.encode())
        except OSError as error:
            error.filename = str(path)
            raise


@contextmanager
def spare_space(folder: Path, size: int = 1 << 16) -> Iterator[None]:
    """Reserve `size` bytes on the disk of a folder until the block ends: room for a record if the disk fills.

    A file without a name holds them, so a kill leaves nothing. No error if the disk is already full, or the
    folder cannot be written to.
    """
    owner = os.getpid()
    with ExitStack() as held:
        with suppress(OSError):
            file = held.enter_context(tempfile.TemporaryFile(dir=folder))
            os.posix_fallocate(file.fileno(), 0, size)
            held.callback(
                lambda: os.getpid() != owner or file.truncate(0)
            )  # forked processes may hold it
        yield


def sync_folder(folder: Path) -> None:
    """Make the entries created, renamed or removed in a folder survive a power failure.

    Some network file systems do not support this for folders; the error is ignored.
    """
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def make_folder(parent: Path, prefix: str) -> Path:
    """Make a new folder with a random name.

    Unlike mkdtemp's, it has the permissions of any new folder: those that the umask gives, and the group and
    the set-group-ID bit of a folder that a group shares.
    """
    folder = parent / f"{prefix}{secrets.token_hex(4)}"
    folder.mkdir()
    return folder


def umask() -> int:
    """Return the permissions that new files and folders of this process do not get."""
    # os.umask can only read the mask by setting it, a race between threads; /proc shows it.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022


REPORT = "report"
"""The only folder inside a study that commands may write to."""


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
    read = any(os.path.realpath(path) == place for path in inputs if path is not None)
    if read or (target.suffix == ".toml" and target.exists()):
        what = "which the command reads" if read else "a study file or a site profile"
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
    if _of_the_system(target) or (
        place.exists() and not place.is_dir() and not place.is_file()
    ):
        return  # a device or a pipe
    folder = (
        place
        if place.is_dir()
        else next(each for each in place.parents if each.exists())
    )
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        what = f"{target}: {error.strerror}"
        raise UserError(
            "a target that can be written", what, "Name another with --out."
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
