"""Whether runs learned anything: those that diverged, stand at chance, or collapsed beside others of a row.

Chance is the quality of one answer for every sample (or pixel), which each run measures on its own set. The
share of right answers of n labels scatters by sqrt(c(1 - c) / n) about a chance of c, so a metric in [0, 1]
must lie two of these beyond it. Every run is judged by itself: a mean over seven seeds hides one that failed,
and so does its interval.
"""

from collections.abc import Sequence
from math import isfinite, sqrt
from statistics import fmean, median
from typing import Literal, NamedTuple

from scalestudy.analysis.runs import Run, Seed, epoch_value, metric_label, seed_of
from scalestudy.study.metrics import Sense, gain

GROWN = 0.1
"""Growth of the training loss from the first epoch to the last, as a share of the first, that is called
divergence; less may be the scatter of a loss that was small from the start."""
ERRORS = 2.0
"""Standard errors beyond chance within which a quality is no better than chance."""
LEAST = 0.02
"""The same as a share of chance, or of what chance leaves to 1 where that is less."""
COLLAPSED = 0.5
"""Share of what the median run of a row has learned beyond chance below which a run has collapsed."""

FailureKind = Literal["diverged", "chance", "collapsed"]


class FailedRun(NamedTuple):
    """How one run failed to learn, in words without a full stop."""

    seed: Seed
    kind: FailureKind
    sentence: str


def failures(runs: Sequence[Run], sense: Sense, digits: int) -> list[FailedRun]:
    """The runs of a row that failed to learn.

    Args:
        runs: Of one row.
        sense: Of its quality.
        digits: Decimals of its quality, for the sentences.
    """
    chance = chance_of(runs)
    floor = chance if chance is not None else 0.0 if sense.bounded and sense.better == "higher" else None
    known = [run.result.quality for run in runs if run.result.quality is not None]
    finite = [quality for quality in known if isfinite(quality)]
    middle = median(finite) if finite else None
    found = []
    for run in runs:
        failed = _failure(run, chance, floor, middle, sense, digits)
        if failed:
            found.append(FailedRun(seed_of(run), *failed))
    return found


def _failure(
    run: Run, chance: float | None, floor: float | None, middle: float | None, sense: Sense, digits: int
) -> tuple[FailureKind, str] | None:
    wild = divergence(run)
    if wild:
        return "diverged", f"diverged: {wild}"
    quality, metric = run.result.quality, metric_label(run.result.metric)
    if quality is None or sense.better is None:
        return None
    labels = run.result.quality_labels or 0
    if chance is not None and gain(quality - chance, sense.better) <= scatter(chance, labels, sense):
        return (
            "chance",
            f"learned nothing: {metric} {quality:.{digits}f} is no better than the {chance:.{digits}f}"
            " of one answer for everything",
        )
    if floor is None or middle is None:
        return None
    learned, usual = gain(quality - floor, sense.better), gain(middle - floor, sense.better)
    if usual > 0 and learned < COLLAPSED * usual:
        return (
            "collapsed",
            f"collapsed: {metric} {quality:.{digits}f}, where the median is {middle:.{digits}f}",
        )
    return None


def chance_of(runs: Sequence[Run]) -> float | None:
    """Mean quality of one answer for everything; None where a run did not record it."""
    known = [run.result.constant_quality for run in runs if run.result.constant_quality is not None]
    return fmean(known) if known and len(known) == len(runs) else None


def scatter(chance: float, labels: int, sense: Sense) -> float:
    """How far from `chance` a quality over so many labels may lie without a model behind it."""
    if not sense.bounded or not 0 <= chance <= 1:
        return LEAST * abs(chance)
    error = sqrt(chance * (1 - chance) / labels) if labels else 0.0
    return max(ERRORS * error, LEAST * min(chance, 1 - chance))


def divergence(run: Run) -> str | None:
    """What shows that a run diverged: a loss or quality that is not finite, or a training loss that grew."""
    result = run.result
    if result.quality is not None and not isfinite(result.quality):
        return f"{metric_label(result.metric)} is not finite at the end"
    if not run.epochs:
        return None
    first, last = epoch_value(run.epochs, 0, "loss"), epoch_value(run.epochs, -1, "loss")
    if first is None or last is None:
        return None
    validation = epoch_value(run.epochs, -1, "validation", "loss")
    if not isfinite(last) or not isfinite(0.0 if validation is None else validation):
        return "the loss is not finite at the end"
    if isfinite(first) and last - first > GROWN * abs(first):
        return f"the training loss grew from {first:.3g} to {last:.3g}"
    return None
