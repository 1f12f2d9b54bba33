"""Whether a row's runs learned anything: what diverged, or stands at chance, is held against nothing.

Chance is the quality of one answer for every sample (or pixel), which each run measures on its own set. The
share of right answers of n labels scatters by sqrt(c(1 - c) / n) about a chance of c, so a metric in [0, 1]
must lie two of these beyond it.
"""

from collections.abc import Sequence
from math import isfinite, sqrt
from statistics import fmean
from typing import Literal, NamedTuple

from scalestudy.analysis.runs import Run, epoch_value, metric_label
from scalestudy.study.metrics import Sense, gain

GROWN = 0.1
"""Growth of the training loss from the first epoch to the last, as a share of the first, that is called
divergence; less may be the scatter of a loss that was small from the start."""
ERRORS = 2.0
"""Standard errors beyond chance within which a quality is no better than chance."""
LEAST = 0.02
"""The same as a share of chance, or of what chance leaves to 1 where that is less."""


class Failure(NamedTuple):
    """How a row's runs failed to learn, in words without a full stop."""

    kind: Literal["diverged", "chance"]
    sentence: str


def failure(runs: Sequence[Run], sense: Sense, digits: int) -> Failure | None:
    """How these runs failed to learn, or None.

    Args:
        runs: Of one row.
        sense: Of its quality.
        digits: Decimals of its quality, for the sentence.
    """
    wild = [reason for run in runs if (reason := divergence(run))]
    if wild:
        which = "" if len(runs) == 1 else f"{len(wild)} of {len(runs)} runs: "
        return Failure("diverged", f"diverged: {which}{wild[0]}")
    chance = chance_of(runs)
    if chance is None or sense.better is None:
        return None
    known = [run.result.quality for run in runs if run.result.quality is not None]
    if len(known) < len(runs):
        return None
    quality = fmean(known)
    labels = min((run.result.quality_labels or 0 for run in runs), default=0)
    if gain(quality - chance, sense.better) > scatter(chance, labels, sense):
        return None
    metric = metric_label(runs[0].result.metric)
    return Failure(
        "chance",
        f"learned nothing: {metric} {quality:.{digits}f} is no better than the {chance:.{digits}f}"
        " of one answer for everything",
    )


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
