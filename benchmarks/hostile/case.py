"""A bad input."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """A bad input, made in an empty folder of its own.

    Attributes:
        family: What it is an input of.
        name: Which one, unique in its family.
        build: Writes its files into the folder, which is the working folder too; gives the command line.
        must: Whether it has to be refused; a mutation may leave an input that is fine.
        ordinary: Whether to run it without a superuser's right to read everything.
        slow: Whether it starts a framework, which takes seconds.
    """

    family: str
    name: str
    build: Callable[[Path], list[str]]
    must: bool = False
    ordinary: bool = False
    slow: bool = False
