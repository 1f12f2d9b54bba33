"""SHA-256 checksums of a finished run's files, in a file that `sha256sum --check` reads too."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

from scalestudy.util.files import contents, open_regular, write_atomically

CHECKSUMS = "SHA256SUMS"
BLOCK = 2**22
"""Bytes that are read at once."""


def write_checksums(folder: Path, names: Iterable[str]) -> None:
    """Write the checksums of these files of a folder, by their relative names.

    Raises:
        OSError: A file cannot be read, or the checksums cannot be written.
    """
    lines = [f"{file_checksum(folder / name)}  {name}\n" for name in sorted(names)]
    write_atomically(folder / CHECKSUMS, "".join(lines))


def read_checksums(folder: Path) -> dict[str, str]:
    """The checksums that `write_checksums` wrote, by file name.

    Raises:
        OSError: They cannot be read.
        ValueError: They are damaged.
    """
    found = {}
    for number, line in enumerate(contents(folder / CHECKSUMS).decode().splitlines(), start=1):
        checksum, separator, name = line.partition("  ")
        if not separator or len(checksum) != 64:
            raise ValueError(f"line {number} holds no checksum")
        found[name] = checksum
    return found


def file_checksum(file: Path, on_read: Callable[[str, int], object] = lambda name, size: None) -> str:
    """SHA-256 of a regular file, in hexadecimal digits; `on_read` gets its name and the bytes of each block.

    Raises:
        OSError: It cannot be read.
    """
    digest = hashlib.sha256()
    with open_regular(file, most=2**63) as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
            on_read(str(file), len(block))
    return digest.hexdigest()
