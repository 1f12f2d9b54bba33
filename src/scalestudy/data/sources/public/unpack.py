"""Unpack an archive of others: nothing is written outside the folder, nothing but files and folders."""

import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from scalestudy import units
from scalestudy.errors import UserError

MOST_ENTRIES = 5_000_000
_BLOCK = 1 << 20
_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, RuntimeError, NotImplementedError),
)
Entry = tuple[str, str | None, int, Any]
"""Name; what it is if neither file nor folder, which is refused; bytes announced (-1: a folder); member."""


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a .zip or a .tar (compressed or not) into an empty folder.

    Every name is looked at before its content is written. What is announced, and then what really comes,
    must fit on the disk.

    Raises:
        UserError: the archive is damaged, or holds what has no place in a data set: names that lead out of
            the folder, links, devices, one name twice, or more than the disk takes.
        OSError: the folder cannot take it.
    """
    total = 0
    with _opened(archive) as (entries, reader):
        for number, (name, strange, size, member) in enumerate(entries):
            target = folder / _safe(name, archive)
            if strange:
                raise _refused(archive, f"{name!r}, {strange}")
            if number >= MOST_ENTRIES:
                raise _refused(archive, f"more than {MOST_ENTRIES:,} entries")
            if size < 0:
                target.mkdir(parents=True, exist_ok=True)
                continue
            total += size
            if size > shutil.disk_usage(folder).free:
                raise _refused(
                    archive, f"{units.size(total)} and more, for which there is no space in {folder}"
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                raise _refused(archive, f"{name!r} twice")
            with reader(member) as source, open(target, "xb") as out:
                _copy(source, out, size, name, archive)


def _copy(source: IO[bytes], out: IO[bytes], size: int, name: str, archive: Path) -> None:
    done = 0
    while block := source.read(min(_BLOCK, size - done + 1)):
        done += len(block)
        if done > size:
            raise _refused(archive, f"{name!r} of more than the {size:,} bytes that it announces")
        out.write(block)
    if done < size:
        raise _damaged(archive, f"{name!r} ends after {done:,} of {size:,} bytes")


def _safe(name: str, archive: Path) -> Path:
    """The name as a path inside a folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or name[1:2] == ":":
        raise _refused(archive, f"{name!r}, which leads out of the folder")
    return Path(*path.parts)


@contextmanager
def _opened(archive: Path) -> Iterator[tuple[Iterator[Entry], Any]]:
    """Entries of an archive in their order, and what opens one."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as pack:
                yield _of_zip(pack), pack.open
        else:
            with tarfile.open(archive) as tar:
                yield _of_tar(tar), tar.extractfile
    except _DAMAGED as error:
        raise _damaged(archive, str(error)) from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise _refused(archive, f"{error.filename!r} as a file and as a folder") from error
    except OSError as error:
        if error.errno is None:  # what gzip and zlib raise of damaged streams
            raise _damaged(archive, str(error)) from error
        raise


def _of_zip(pack: zipfile.ZipFile) -> Iterator[Entry]:
    for member in pack.infolist():
        mode = member.external_attr >> 16
        kind = stat.S_IFMT(mode)
        strange = None
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            strange = "a link" if kind == stat.S_IFLNK else "no regular file"
        elif member.flag_bits & 1:
            strange = "which is encrypted"
        yield member.orig_filename, strange, -1 if member.is_dir() else member.file_size, member


def _of_tar(tar: tarfile.TarFile) -> Iterator[Entry]:
    for member in tar:
        strange = None
        if member.issym() or member.islnk():
            strange = f"a link to {member.linkname!r}"
        elif not (member.isreg() or member.isdir()):
            strange = "a device, a pipe or another thing that is no file"
        yield member.name, strange, -1 if member.isdir() else member.size, member


def _refused(archive: Path, what: str) -> UserError:
    return UserError(
        "an archive of files and folders that stay inside its own",
        f"{archive.name} with {what}",
        "Take it from its publisher: this one is not what was published.",
    )


def _damaged(archive: Path, reason: str) -> UserError:
    return UserError("an archive that can be unpacked", f"{archive}: {reason}", "Delete it and run again.")
