"""Read the strategy, the workers and the seed of a run from the name of its file and its folders."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scalestudy.plugins.strategies import named

OTHERS = ("fsdp", "deepspeed")
"""Strategies recognised in names although no engine here has them."""
YEARS = range(1990, 2100)
"""A bare number in a name that is more likely a year than a number of workers."""
_COUNT = re.compile(
    r"(?:(?:w|n|np|gpus?|ngpus?|workers?|ranks?)[_=-]?(\d{1,6})|(\d{1,6})[_-]?(?:x?gpus?|workers?|ranks?))"
)
_SEED = re.compile(r"(?:s|seed)[_=-]?(\d{1,15})")
_SPLIT = re.compile(r"[_\-. ]+")


class RunName(NamedTuple):
    """Values read from a name; None if it does not state them."""

    workers: int | None = None
    strategy: str | None = None
    seed: int | None = None


def run_name(path: Path, *, bare: bool) -> RunName:
    """Return what the name of a file and its two folders state; `bare` allows `log_8` for eight workers."""
    *folders, _ = path.absolute().parts[-3:]
    return parse_name((*folders, path.stem), bare=bare)


def parse_name(parts: Sequence[str], *, bare: bool = True) -> RunName:
    """Read workers, strategy and seed from the parts of a path, starting with the last.

    With `bare`, a number alone in the last part is the number of workers (`log_8`) if none there is marked as
    such. Two different numbers are ambiguous and ignored.
    """
    workers = None
    strategy = None
    seed = None

    for part in reversed(parts):
        words = [word for word in _SPLIT.split(part.lower()) if word]
        joined = "_".join(words)
        if strategy is None:
            strategy = _first_strategy(words)
        if workers is None:
            marked = _marked_numbers(_COUNT, joined)
            workers = _only_count(marked)
        if workers is None and bare and part == parts[-1]:
            unmarked = _bare_numbers(words)
            workers = _only_count(unmarked)
        if seed is None:
            seeds = _marked_numbers(_SEED, joined)
            if len(seeds) == 1:
                seed = seeds.pop()
    return RunName(workers, strategy, seed)


def _first_strategy(words: Sequence[str]) -> str | None:
    for word in words:
        if word in OTHERS:
            return word
        if word.isalpha():
            strategy = named(word)
            if strategy:
                return strategy
    return None


def _only_count(counts: set[int]) -> int | None:
    """Return the one positive number; None if there are several or none."""
    if len(counts) == 1 and min(counts) > 0:
        return counts.pop()
    return None


def _bare_numbers(words: Sequence[str]) -> set[int]:
    numbers = set()
    for word in words:
        if re.fullmatch(r"[0-9]{1,6}", word) and int(word) not in YEARS:
            numbers.add(int(word))
    return numbers


def _marked_numbers(pattern: re.Pattern[str], text: str) -> set[int]:
    """Return the numbers of a pattern where it matches whole words of a text."""
    whole = re.compile(rf"(?:(?<=_)|^)(?:{pattern.pattern})(?=_|$)")
    numbers = set()
    for found in whole.finditer(text):
        # A mark may stand before or after its number: w8, 8gpus.
        (number,) = filter(None, found.groups())
        numbers.add(int(number))
    return numbers
