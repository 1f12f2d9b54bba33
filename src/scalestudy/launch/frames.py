"""Where in the user's own files something happened."""

import re
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import NamedTuple

_FAULT = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<name>.+)$', re.MULTILINE)


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
            return f"{Path(frame.file).name}, line {frame.line}{inside}"
    return ""


def raised_at(traceback: TracebackType | None) -> list[Frame]:
    """The places that an exception has passed, the innermost last."""
    return [Frame(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in walk_tb(traceback)]


def crashed_at(text: str) -> list[Frame]:
    """The places in what Python's `faulthandler` writes when a signal ends it, the innermost last."""
    found = [Frame(each["file"], int(each["line"]), each["name"]) for each in _FAULT.finditer(text)]
    return found[::-1]


def _users(file: str) -> bool:
    # TensorFlow's AutoGraph runs a copy of the user's functions, whose lines are not the file's.
    generated = file.startswith("<") or Path(file).name.startswith("__autograph_generated")
    return not generated and not any(Path(file).is_relative_to(folder) for folder in _installed())


@cache
def _installed() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return (Path(__file__).parents[1], *(Path(folder) for folder in folders))
