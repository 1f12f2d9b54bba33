"""Text files of others: their encoding found, read line by line."""

import codecs
from collections.abc import Iterator
from pathlib import Path

from scalestudy.features.imported.base import Head
from scalestudy.printable import printable

HEAD_BYTES = 64 * 1024
LONGEST_LINE = 1 << 20
"""Characters of a line; what is longer is no text, or no line of a table."""
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def head_of(path: Path) -> Head:
    """The beginning of a file; of a folder nothing but its name.

    Raises:
        OSError: It cannot be read.
    """
    if path.is_dir():
        return Head(path, b"", "")
    with path.open("rb") as stream:
        data = stream.read(HEAD_BYTES)
    return Head(path, data, "" if _binary(data) else data.decode(encoding(data), errors="replace"))


def encoding(data: bytes) -> str:
    """Encoding of a text that begins so: by its mark, else UTF-8 where it is that, else Windows-1252."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # the last character may be cut off
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def lines(path: Path) -> Iterator[str]:
    """Lines of a text file, without their ends; overlong ones are cut.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as stream:
        name = encoding(stream.read(HEAD_BYTES))
    with path.open(encoding=name, errors="replace") as text:
        while line := text.readline(LONGEST_LINE):
            yield line.rstrip("\n")


def shown(text: str) -> str:
    """A text of others in a message: printable, and short."""
    clean = printable(text)
    return clean if len(clean) <= 60 else f"{clean[:60]}…"


def _binary(data: bytes) -> bool:
    marked = any(data.startswith(mark) for mark, _ in _MARKS)
    return not marked and b"\0" in data
