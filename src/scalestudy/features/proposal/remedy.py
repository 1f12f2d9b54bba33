"""What to run so that a panel's question can be answered: a part of a study file, and words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scalestudy.study.toml import toml_line


@dataclass(frozen=True)
class Remedy:
    """What would supply something that a study lacks.

    Attributes:
        words: What to do, as a sentence with its full stop.
        workers: Numbers of workers to add under [sweep].
        seeds: So many seeds under [sweep]; 0 where their number is no matter.
        keys: Settings of a study of its own, by dotted name: ("sweep.train.batch", ["global"]).
    """

    words: str = ""
    workers: tuple[int, ...] = ()
    seeds: int = 0
    keys: tuple[tuple[str, Any], ...] = ()


def sweep_lines(remedies: Sequence[Remedy], workers: Sequence[int], seeds: Sequence[int]) -> str:
    """The [sweep] of the same study with all that remedies add; "" where they add nothing.

    Args:
        remedies: What is lacking.
        workers: Numbers of workers that the study has.
        seeds: Seeds that it has.
    """
    wanted = sorted({*workers, *(count for remedy in remedies for count in remedy.workers)})
    number = max((remedy.seeds for remedy in remedies), default=0)
    more = [seed for seed in range(number + len(seeds)) if seed not in seeds]
    repeats = sorted([*seeds, *more[: max(0, number - len(seeds))]])
    lines = []
    if wanted != sorted(workers):
        lines.append(f"workers = {wanted}")
    if repeats != sorted(seeds):
        lines.append(f"seed = {repeats}")
    return "\n".join(["[sweep]", *lines]) + "\n" if lines else ""


def other_study(remedies: Sequence[Remedy]) -> str:
    """Lines of a study file of its own, for what changes more than [sweep]'s lists; "" for nothing."""
    keys = {name: value for remedy in remedies for name, value in remedy.keys}
    lines: list[str] = []
    for section in dict.fromkeys(name.partition(".")[0] for name in keys):
        own = {
            name.partition(".")[2]: value for name, value in keys.items() if name.startswith(f"{section}.")
        }
        lines += [f"[{section}]", *(toml_line(name, value) for name, value in own.items()), ""]
    return "\n".join(lines).rstrip() + "\n" if lines else ""
