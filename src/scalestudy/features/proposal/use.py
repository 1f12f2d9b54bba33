"""What the runs of a row used, averaged; None as soon as one of them has not told it."""

from collections.abc import Sequence
from statistics import fmean
from typing import TypeVar

from scalestudy.analysis.runs import Run
from scalestudy.study.usage import GpuUse

Number = TypeVar("Number", int, float)


def watts_of(runs: Sequence[Run]) -> float | None:
    """Mean power of all GPUs of a run together, in W."""
    sums = [_all([use.watts for use in run.result.gpus]) for run in runs]
    known = [sum(values) for values in sums if values]
    return fmean(known) if known and len(known) == len(runs) else None


def memory_percent_of(runs: Sequence[Run]) -> float | None:
    """Mean share of time in which GPUs' memory was read or written, in per cent."""
    found = _all([use.memory_percent for use in _uses(runs)])
    return fmean(found) if found else None


def _uses(runs: Sequence[Run]) -> list[GpuUse]:
    return [use for run in runs for use in run.result.gpus]


def _all(values: Sequence[Number | None]) -> list[Number]:
    """The values, or none of them where one is not known."""
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []
