"""Read workers, strategy and seed of a run from the name of its log file or folder."""

import re
from pathlib import Path
from typing import NamedTuple

from scalestudy.features.imported.columns import ImportOptions, shown
from scalestudy.study.strategies import REGISTRY, traits
from scalestudy.util.errors import UserError

OTHERS = ("fsdp", "deepspeed")
"""Strategies recognised in file names although no engine here has them."""
_COUNT = re.compile(
    r"(?:(?:w|n|np|gpus?|ngpus?|workers?|ranks?)[_=-]?(\d{1,6})|(\d{1,6})[_-]?(?:x?gpus?|workers?|ranks?))"
)
_SEED = re.compile(r"(?:s|seed)[_=-]?(\d{1,15})")
_SPLIT = re.compile(r"[_\-. ]+")


class LogName(NamedTuple):
    """Values read from a name; None if it does not state them."""

    workers: int | None = None
    strategy: str | None = None
    seed: int | None = None


def run_of_log(path: Path, options: ImportOptions) -> LogName:
    """Return workers, strategy and seed of a log's run, from the options or else from its name and folders.

    Raises:
        UserError: Neither states the number of workers.
    """
    parts = path.absolute().parts[-3:]
    name = parse_name((*parts[:-1], parts[-1].removesuffix(path.suffix) if path.is_file() else parts[-1]))
    workers = options.workers or name.workers
    if workers is None:
        raise UserError(
            "a log whose name states its number of workers, such as log_8.csv or run-w8/",
            shown(path.name),
            "Rename it, or give one number for all: --workers N.",
        )
    return LogName(workers, options.strategy or name.strategy, name.seed)


def parse_name(parts: tuple[str, ...]) -> LogName:
    """Read workers, strategy and seed from the parts of a path, starting with the last.

    A bare number in the last part is the number of workers (`log_8`) if no number there is marked as such.
    Two different bare numbers are ambiguous and ignored.
    """
    known = {name: name for name in OTHERS}
    known |= {word: name for name in REGISTRY.names() for word in (name, *traits(name).aliases)}
    workers = strategy = seed = None
    for part in reversed(parts):
        words = [word for word in _SPLIT.split(part.lower()) if word]
        joined = "_".join(words)
        strategy = strategy or next((known[word] for word in words if word in known), None)
        if workers is None:
            counts = {int(found[1] or found[2]) for found in _whole_words(_COUNT, joined)}
            if part == parts[-1]:
                counts = counts or {int(word) for word in words if re.fullmatch(r"[0-9]{1,6}", word)}
            workers = counts.pop() if len(counts) == 1 and min(counts) > 0 else None
        if seed is None:
            seeds = {int(found[1]) for found in _whole_words(_SEED, joined)}
            seed = seeds.pop() if len(seeds) == 1 else None
    return LogName(workers, strategy, seed)


def _whole_words(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"(?:(?<=_)|^)(?:{pattern.pattern})(?=_|$)", text))
