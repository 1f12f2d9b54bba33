"""Strategy, workers and seed as names of files and folders tell them: `log_hvd_8.csv`, `ddp-w4-s1/`."""

import re
from dataclasses import dataclass

STRATEGIES = {
    "hvd": "horovod", "horovod": "horovod", "mirrored": "mirrored", "mirroredstrategy": "mirrored",
    "multiworker": "multiworker", "mwms": "multiworker", "multiworkermirrored": "multiworker",
    "native": "native", "single": "single", "ddp": "ddp", "fsdp": "fsdp", "deepspeed": "deepspeed",
    "ps": "parameter-server", "virtual": "virtual",
}  # fmt: skip
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

    A lone number is a worker count where nothing else is one: `log_8.csv`. Of two numbers none is.
    """
    workers = strategy = seed = None
    for part in reversed(parts):
        words = [word for word in _SPLIT.split(part.lower()) if word]
        joined = "_".join(words)
        strategy = strategy or next((STRATEGIES[word] for word in words if word in STRATEGIES), None)
        if workers is None:
            counts = {int(found[1] or found[2]) for found in _whole(_COUNT, joined)}
            counts = counts or {int(word) for word in words if re.fullmatch(r"\d{1,6}", word)}
            workers = counts.pop() if len(counts) == 1 and min(counts) > 0 else None
        if seed is None:
            seeds = {int(found[1]) for found in _whole(_SEED, joined)}
            seed = seeds.pop() if len(seeds) == 1 else None
    return Named(workers, strategy, seed)


def _whole(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Matches that are whole words."""
    return list(re.finditer(rf"(?:(?<=_)|^)(?:{pattern.pattern})(?=_|$)", text))
