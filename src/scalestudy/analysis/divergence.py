"""Runs that did not learn: they diverged, stayed at chance level, or collapsed.

Chance is the quality of a constant prediction for every sample (or pixel), which each run measures on its
own validation set. The share of correct predictions over n labels has a standard error of sqrt(c(1 - c) / n)
about a chance of c. Every run is judged on its own: a mean over seven seeds hides one that failed, and so
does its interval.
"""

from collections.abc import Sequence
from math import isfinite, sqrt
from statistics import fmean, median
from typing import Literal, NamedTuple

from scalestudy.analysis.runs import Run, Seed, epoch_values, metric_label, seed_of
from scalestudy.config.metric_senses import Better, Sense, gain
from scalestudy.store.records import EpochOutcome

GROWN = 0.1
"""Growth of the training loss from the first epoch to the last, as a share of the first, above which a run
has diverged; less may be the scatter of a loss that was small from the start."""
ERRORS = 2.0
"""Standard errors above chance within which a quality counts as no better than chance."""
LEAST = 0.02
"""The same as a share of chance, or of 1 - chance if that is less."""
COLLAPSED = 0.5
"""Share of the gain over chance of a row's median run; a run that gained less has collapsed."""

FailureKind = Literal["diverged", "chance", "collapsed"]


class FailedRun(NamedTuple):
    """How one run failed to learn; `sentence` has no full stop."""

    seed: Seed
    kind: FailureKind
    sentence: str


def failures(runs: Sequence[Run], sense: Sense, digits: int) -> list[FailedRun]:
    """Return the runs of a row that failed to learn; `digits` are the decimals of quality in sentences."""
    chance = chance_of(runs)
    usual = _usual_gain(runs, sense, chance)
    failed = []
    for run in runs:
        seed = seed_of(run)
        quality = run.result.quality
        metric = metric_label(run.result.metric)
        # A run that diverged may end with any quality, so this comes first.
        if why := _divergence(run):
            failed.append(FailedRun(seed, "diverged", f"diverged: {why}"))
            continue
        if quality is None or sense.better is None:
            continue
        shown = f"{quality:.{digits}f}"
        if chance is not None and _is_chance(run, quality, chance, sense):
            why = f"no better than {chance:.{digits}f}, that of a constant answer"
            words = f"learned nothing: {metric} {shown} is {why}"
            failed.append(FailedRun(seed, "chance", words))
        elif usual is not None and usual.is_collapse(quality):
            why = f"{shown}, where the median is {usual.median:.{digits}f}"
            failed.append(FailedRun(seed, "collapsed", f"collapsed: {metric} {why}"))
    return failed


class _UsualGain(NamedTuple):
    """What the median run of a row gains over a model that learned nothing."""

    median: float
    floor: float
    better: Better

    def is_collapse(self, quality: float) -> bool:
        """Whether a run gained so much less that it collapsed."""
        usual = gain(self.median - self.floor, self.better)
        own = gain(quality - self.floor, self.better)
        # Where the median run gained nothing, there is nothing to collapse from.
        return usual > 0 and own < COLLAPSED * usual


def _usual_gain(
    runs: Sequence[Run],
    sense: Sense,
    chance: float | None,
) -> _UsualGain | None:
    """None if it is not known what a model scores that learned nothing, or no run ended with a quality."""
    if sense.better is None:
        return None
    floor = chance
    if floor is None:
        # The least that a metric in [0, 1] can be.
        if not sense.bounded or sense.better != "higher":
            return None
        floor = 0.0
    finite = []
    for run in runs:
        if run.result.quality is not None and isfinite(run.result.quality):
            finite.append(run.result.quality)
    if not finite:
        return None
    return _UsualGain(median(finite), floor, sense.better)


def _is_chance(
    run: Run,
    quality: float,
    chance: float,
    sense: Sense,
) -> bool:
    assert sense.better is not None
    labels = run.result.quality_labels or 0
    over = gain(quality - chance, sense.better)
    return over <= chance_tolerance(chance, labels, sense)


def chance_of(runs: Sequence[Run]) -> float | None:
    """Mean quality of a constant prediction; None if a run did not record it."""
    qualities = []
    for run in runs:
        if run.result.constant_quality is None:
            return None
        qualities.append(run.result.constant_quality)
    if not qualities:
        return None
    # Each run measures it on its own validation set.
    return fmean(qualities)


def chance_tolerance(chance: float, labels: int, sense: Sense) -> float:
    """How far from `chance` the quality of a useless model over so many labels may lie."""
    if not sense.bounded or not 0 <= chance <= 1:
        return LEAST * abs(chance)
    error = 0.0
    if labels:
        # Standard error of a share of correct predictions over so many labels.
        error = sqrt(chance * (1 - chance) / labels)
    least = LEAST * min(chance, 1 - chance)
    return max(ERRORS * error, least)


def _divergence(run: Run) -> str | None:
    """Evidence that a run diverged: a loss or quality that is not finite, or a training loss that grew."""
    result = run.result
    if since := _not_finite(run.epochs):
        return since
    if result.quality is not None and not isfinite(result.quality):
        return f"{metric_label(result.metric)} is not finite at the end"
    if not run.epochs:
        return None
    losses = epoch_values(run.epochs, "loss")
    first = losses[0]
    last = losses[-1]
    if first is None or last is None:
        return None
    grown = last - first
    if isfinite(first) and grown > GROWN * abs(first):
        return f"the training loss grew from {first:.3g} to {last:.3g}"
    return None


def _not_finite(epochs: Sequence[EpochOutcome]) -> str | None:
    """Where the loss ceased to be finite, if it is not finite in the last epoch."""
    kinds = {
        "loss": epoch_values(epochs, "loss"),
        "validation loss": epoch_values(epochs, "validation", "loss"),
    }
    for name, losses in kinds.items():
        places = []
        for place, loss in enumerate(losses):
            if loss is not None and not isfinite(loss):
                places.append(place)
        # A run that recovered from such a loss did not diverge.
        if not places or places[-1] != len(losses) - 1:
            continue
        first = epochs[places[0]]
        text = f"the {name} is not finite from epoch {first.epoch} on"
        if first.not_finite:
            text += f"; the first weight that is not is {first.not_finite}"
        return text
    return None
