"""What the GPUs of runs did in their training time: blank as soon as one of them has not told it."""

from collections.abc import Sequence

from scalestudy.analysis.means import largest_of, mean_of, sum_of
from scalestudy.analysis.runs import Run


def whole(run: Run) -> bool:
    """Whether what a run says it used is of all of its processes, those before a restart included."""
    return not run.result.restarts or run.result.usage_of == "run"


def gpu_percent_of(runs: Sequence[Run]) -> float | None:
    """Mean utilisation of the GPUs of all runs, in per cent."""
    return mean_of(use.percent for run in runs for use in run.result.gpus)


def gpu_memory_of(runs: Sequence[Run]) -> float | None:
    """The most bytes that the framework had given to tensors at once, on any GPU."""
    return largest_of(use.allocated_bytes for run in runs for use in run.result.gpus)


def energy_of(runs: Sequence[Run]) -> float | None:
    """Mean energy of a training, in joules: of its GPUs alone, all of them together.

    Blank for a resumed run that knows its last process only.
    """
    return mean_of(sum_of(use.joules for use in run.result.gpus) if whole(run) else None for run in runs)


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
