"""Runs that did not learn: they diverged, stayed at chance level, or collapsed.

Chance is the quality of a constant prediction for every sample (or pixel), which each run measures on its
own validation set. The share of correct predictions over n labels has a standard error of sqrt(c(1 - c) / n)
about a chance of c. Every run is judged on its own: a mean over seven seeds hides one that failed, and so
does its interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import fmean, median
from typing import Any, Literal, NamedTuple

from scalestudy.analysis.runs import Run, Seed, epoch_values, seed_of
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


@dataclass(frozen=True)
class LossNotFinite:
    """A loss that was not finite from an epoch on; `weight` is the first weight that was not, if recorded."""

    loss: Literal["loss", "validation loss"]
    epoch: int
    weight: str | None


@dataclass(frozen=True)
class QualityNotFinite:
    """A quality that was not finite at the end."""

    metric: str


@dataclass(frozen=True)
class LossGrew:
    """A training loss that grew from the first epoch to the last."""

    first: float
    last: float


@dataclass(frozen=True)
class NoBetterThanChance:
    """A quality no better than that of a constant answer."""

    metric: str
    quality: float
    chance: float


@dataclass(frozen=True)
class FarBelowMedian:
    """A quality that gained much less over chance than the median run of the row."""

    metric: str
    quality: float
    median: float


Divergence = LossNotFinite | QualityNotFinite | LossGrew
Evidence = Divergence | NoBetterThanChance | FarBelowMedian


class FailedRun(NamedTuple):
    """How one run failed to learn, and what shows it."""

    seed: Seed
    kind: FailureKind
    evidence: Evidence


def failures(runs: Sequence[Run], sense: Sense) -> list[FailedRun]:
    """Return the runs of a row that failed to learn."""
    chance = chance_of(runs)
    usual = _usual_gain(runs, sense, chance)
    failed = []
    for run in runs:
        seed = seed_of(run)
        quality = run.result.quality
        metric = run.result.metric
        # A run that diverged may end with any quality, so this comes first.
        if diverged := _divergence(run):
            failed.append(FailedRun(seed, "diverged", diverged))
            continue
        if quality is None or sense.better is None:
            continue
        if chance is not None and _is_chance(run, quality, chance, sense):
            useless = NoBetterThanChance(metric, quality, chance)
            failed.append(FailedRun(seed, "chance", useless))
        elif usual is not None and usual.is_collapse(quality):
            collapsed = FarBelowMedian(metric, quality, usual.median)
            failed.append(FailedRun(seed, "collapsed", collapsed))
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


def _divergence(run: Run) -> Divergence | None:
    """Evidence that a run diverged: a loss or quality that is not finite, or a training loss that grew."""
    result = run.result
    if lost := _not_finite(run.epochs):
        return lost
    if result.quality is not None and not isfinite(result.quality):
        return QualityNotFinite(result.metric)
    if not run.epochs:
        return None
    losses = epoch_values(run.epochs, "loss")
    first = losses[0]
    last = losses[-1]
    if first is None or last is None:
        return None
    grown = last - first
    if isfinite(first) and grown > GROWN * abs(first):
        return LossGrew(first, last)
    return None


def _not_finite(epochs: Sequence[EpochOutcome]) -> LossNotFinite | None:
    """Where a loss ceased to be finite, if it is not finite in the last epoch."""
    kinds: dict[Literal["loss", "validation loss"], list[Any]] = {
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
        return LossNotFinite(name, first.epoch, first.not_finite)
    return None
