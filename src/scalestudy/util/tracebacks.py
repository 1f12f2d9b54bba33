"""Describe the error that ended a program, and its place in the user's files."""

import re
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import NamedTuple

from scalestudy.util.printable import escape

_FAULT = re.compile(
    r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<name>.+)$',
    re.MULTILINE,
)
_TRACED = re.compile(r"\s|Detected at node |<stack traces unavailable>")
"""Beginnings of the lines in which TensorFlow prints where a node was traced, before the actual error."""
LONGEST = 500
"""Maximum number of characters kept of a message."""


class Frame(NamedTuple):
    """A place in a program: a file, its line, and the name of the function."""

    file: str
    line: int
    name: str


def user_frame(frames: Iterable[Frame]) -> str:
    """Return the innermost place in the user's files, outside Scalestudy, Python and installed packages.

    Args:
        frames: Frames from the outermost to the innermost.

    Returns:
        The place, such as "task.py, line 7, in model"; "" if there is none.
    """
    # An error is often raised inside a library: the last place of the user says more.
    for frame in reversed(list(frames)):
        if not _users(frame.file):
            continue
        place = f"{Path(frame.file).name}, line {frame.line}"
        # Python's names of code without a function: <module>, <lambda>, <listcomp>.
        if not frame.name.startswith("<"):
            place += f", in {frame.name}"
        return escape(place)
    return ""


def raised_at(traceback: TracebackType | None) -> list[Frame]:
    """Return the frames of a traceback, the innermost last."""
    return [
        Frame(frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in walk_tb(traceback)
    ]


def error_text(error: BaseException) -> str:
    """Describe an exception in one line, such as "ValueError: no such thing" or "sys.exit(3)"."""
    if isinstance(error, SystemExit):
        given = ""
        if isinstance(error.code, int | str):
            given = repr(error.code)
        elif error.code is not None:
            given = _message(error)
        return f"sys.exit({escape(given)[:LONGEST]})"
    kept = []
    for line in _lines(_message(error)):
        kept.append(line)
        # TensorFlow announces errors in lines of their own; the first other line is the error.
        if not line.endswith((":", "root error(s) found.")):
            break
    else:
        kept = kept[:1]
    message = escape(" ".join(kept)[:LONGEST])
    name = type(error).__name__
    if not message:
        return name
    return f"{name}: {message}"


def _lines(message: str) -> list[str]:
    """Return the non-empty lines of a message, without the traced places that TensorFlow prints first."""
    lines = [line for line in message.splitlines() if line.strip()]
    if lines and lines[0].startswith("Graph execution error:"):
        own = 1
        while own < len(lines) and _TRACED.match(lines[own]):
            own += 1
        # Else every line is a trace, and all are kept.
        if own < len(lines):
            del lines[1:own]
    return [line.strip() for line in lines]


def locate_error(error: BaseException) -> str:
    """Describe an exception as `error_text`, with the place in the user's files if it was raised in one."""
    text = error_text(error)
    frame = user_frame(raised_at(error.__traceback__))
    if not frame:
        return text
    return f"{text} ({frame})"


def crashed_at(text: str) -> list[Frame]:
    """Parse the frames that Python's `faulthandler` writes on a fatal signal; return the innermost last."""
    frames = []
    for match in _FAULT.finditer(text):
        frames.append(Frame(match["file"], int(match["line"]), match["name"]))
    # faulthandler writes the most recent call first.
    frames.reverse()
    return frames


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        # A class of the user, whose __str__ fails.
        return ""


def _users(file: str) -> bool:
    # Python's names of what is no file: <frozen importlib._bootstrap>, <string>.
    if file.startswith("<"):
        return False
    # TensorFlow's AutoGraph runs a copy of the user's functions, with other line numbers.
    if Path(file).name.startswith("__autograph_generated"):
        return False
    return not any(Path(file).is_relative_to(folder) for folder in _installed())


@cache
def _installed() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    # An editable install of ours is outside of all of these.
    return (Path(__file__).parents[1], *map(Path, folders))
