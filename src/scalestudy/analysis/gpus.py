"""What the GPUs of runs did in their training time: blank as soon as one of them has not told it."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from scalestudy.analysis.runs import Run


def gpu_percent_of(runs: Sequence[Run]) -> float | None:
    """Mean utilisation of the GPUs of all runs, in per cent."""
    return _all_told(use.percent for run in runs for use in run.result.gpus)


def energy_of(runs: Sequence[Run]) -> float | None:
    """Mean energy of a training, in joules: of its GPUs alone, all of them together.

    A resumed run knows that of its last process only, so it is blank.
    """
    if any(run.result.restarts or not run.result.gpus for run in runs):
        return None
    joules = [use.joules for run in runs for use in run.result.gpus]
    mean = _all_told(joules)
    return None if mean is None else mean * len(joules) / len(runs)


def energy_note(runs: Sequence[Run]) -> list[str]:
    """Where energies come from, in a sentence; nothing where none is known."""
    sources = {use.energy_from for run in runs for use in run.result.gpus}
    ways = {"counter": "the cards' own counters", "power": "their power, looked at once a second"}
    known = [words for source, words in ways.items() if source in sources]
    if not known:
        return []
    return [
        f"Energy is that of the GPUs alone over the training time, by {' and by '.join(known)};"
        " utilisation is NVML's, the share of time in which a kernel ran, however small."
    ]


def _all_told(values: Iterable[float | None]) -> float | None:
    every = list(values)
    known = [each for each in every if each is not None]
    return fmean(known) if known and len(known) == len(every) else None
