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
    workers = strategy = seed = None
    for part in reversed(parts):
        words = [word for word in _SPLIT.split(part.lower()) if word]
        joined = "_".join(words)
        if strategy is None:
            strategy = next(filter(None, map(_strategy_of, words)), None)
        if workers is None:
            workers = _only(
                {int(found[1] or found[2]) for found in _whole_words(_COUNT, joined)}
            )
        if workers is None and bare and part == parts[-1]:
            numbers = {int(word) for word in words if re.fullmatch(r"[0-9]{1,6}", word)}
            workers = _only({number for number in numbers if number not in YEARS})
        if seed is None:
            seeds = {int(found[1]) for found in _whole_words(_SEED, joined)}
            seed = seeds.pop() if len(seeds) == 1 else None
    return RunName(workers, strategy, seed)


def _strategy_of(word: str) -> str | None:
    if word in OTHERS:
        return word
    return named(word) if word.isalpha() else None


def _only(counts: set[int]) -> int | None:
    """Return the one positive number; None if there are several or none."""
    return counts.pop() if len(counts) == 1 and min(counts) > 0 else None


def _whole_words(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"(?:(?<=_)|^)(?:{pattern.pattern})(?=_|$)", text))
