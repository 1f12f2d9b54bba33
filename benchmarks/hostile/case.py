"""A bad input."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """A bad input, created in an empty folder of its own.

    Attributes:
        family: Kind of input.
        name: Unique within its family.
        build: Writes its files into the folder, which is also the working folder; returns the command line.
        must: Whether it must be refused; a mutation may leave an input valid.
        ordinary: Whether to run it without a superuser's right to read everything.
        slow: Whether it starts a framework, which takes seconds.
    """

    family: str
    name: str
    build: Callable[[Path], list[str]]
    must: bool = False
    ordinary: bool = False
    slow: bool = False
