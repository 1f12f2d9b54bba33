"""Strategy, workers and seed as names of files and folders tell them: `log_hvd_8.csv`, `ddp-w4-s1/`."""

import re
from dataclasses import dataclass

from scalestudy.study.strategies import REGISTRY, traits

OTHERS = ("ddp", "fsdp", "deepspeed")
"""Strategies of other frameworks that names of files tell."""
_COUNT = re.compile(
    r"(?:(?:w|n|np|gpus?|ngpus?|workers?|ranks?|procs?|devices?)[_=-]?(\d+)"
    r"|(\d+)[_-]?(?:x?gpus?|workers?|ranks?|procs?|devices?|g))"
)
_SEED = re.compile(r"(?:s|seed)[_=-]?(\d+)")
_SPLIT = re.compile(r"[_\-. ]+")


@dataclass(frozen=True)
class Named:
    """What a name tells; None for what it does not."""

    workers: int | None = None
    strategy: str | None = None
    seed: int | None = None


def named(parts: tuple[str, ...]) -> Named:
    """What the parts of a path tell, those at its end before those before.

    A lone number in the last part is a worker count where nothing else is one: `log_8.csv`; of two none is.
    """
    known = _strategies()
    workers = strategy = seed = None
    for part in reversed(parts):
        words = [word for word in _SPLIT.split(part.lower()) if word]
        joined = "_".join(words)
        strategy = strategy or next((known[word] for word in words if word in known), None)
        if workers is None:
            counts = {int(found[1] or found[2]) for found in _whole(_COUNT, joined)}
            if part == parts[-1]:
                counts = counts or {int(word) for word in words if re.fullmatch(r"\d{1,6}", word)}
            workers = counts.pop() if len(counts) == 1 and min(counts) > 0 else None
        if seed is None:
            seeds = {int(found[1]) for found in _whole(_SEED, joined)}
            seed = seeds.pop() if len(seeds) == 1 else None
    return Named(workers, strategy, seed)


def _strategies() -> dict[str, str]:
    """Strategies by the words that name them."""
    ours = {word: name for name in REGISTRY.names() for word in (name, *traits(name).aliases)}
    return {name: name for name in OTHERS} | ours


def _whole(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Matches that are whole words."""
    return list(re.finditer(rf"(?:(?<=_)|^)(?:{pattern.pattern})(?=_|$)", text))
