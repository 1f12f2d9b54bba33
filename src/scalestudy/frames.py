"""What ended a program, and where in the user's own files."""

import re
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import NamedTuple

_FAULT = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<name>.+)$', re.MULTILINE)
LONGEST = 500
"""Characters of a message that are kept."""


class Frame(NamedTuple):
    """A place in a program: a file, its line, and the name of the function."""

    file: str
    line: int
    name: str


def user_frame(frames: Iterable[Frame]) -> str:
    """The innermost place in a file of the user's: neither ours, nor Python's, nor an installed package's.

    Args:
        frames: From the outermost to the innermost.

    Returns:
        "task.py, line 7, in model"; "" if it is in none.
    """
    for frame in reversed(list(frames)):
        if _users(frame.file):
            inside = "" if frame.name.startswith("<") else f", in {frame.name}"
            return printable(f"{Path(frame.file).name}, line {frame.line}{inside}")
    return ""


def raised_at(traceback: TracebackType | None) -> list[Frame]:
    """The places that an exception has passed, the innermost last."""
    return [Frame(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in walk_tb(traceback)]


def words_of(error: BaseException) -> str:
    """In a line what was raised or called: "ValueError: no such thing", "sys.exit(3)"."""
    if isinstance(error, SystemExit):
        plain = isinstance(error.code, int | str)
        given = repr(error.code) if plain else "" if error.code is None else _message(error)
        return f"sys.exit({printable(given)[:LONGEST]})"
    lines = [line.strip() for line in _message(error).splitlines() if line.strip()]
    message = printable(" ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])[:LONGEST])
    return f"{type(error).__name__}{': ' if message else ''}{message}"


def printable(text: str) -> str:
    """The text with what no terminal should see, and UTF-8 cannot hold, as escapes of Python's."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text
    )


def told(error: BaseException) -> str:
    """The same with the place in the user's own files, where it was raised in one of them."""
    frame = user_frame(raised_at(error.__traceback__))
    return words_of(error) + (f" ({frame})" if frame else "")


def crashed_at(text: str) -> list[Frame]:
    """The places in what Python's `faulthandler` writes when a signal ends it, the innermost last."""
    found = [Frame(each["file"], int(each["line"]), each["name"]) for each in _FAULT.finditer(text)]
    return found[::-1]


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a class of the user's, whose own words fail
        return ""


def _users(file: str) -> bool:
    # TensorFlow's AutoGraph runs a copy of the user's functions, whose lines are not the file's.
    generated = file.startswith("<") or Path(file).name.startswith("__autograph_generated")
    return not generated and not any(Path(file).is_relative_to(folder) for folder in _installed())


@cache
def _installed() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return (Path(__file__).parent, *(Path(folder) for folder in folders))
