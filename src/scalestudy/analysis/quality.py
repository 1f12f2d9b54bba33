"""Quality compared with the one-worker runs: does the model still learn as well?

The interval of the difference, paired by seed, decides, at a level for repeated looks: if all of it is on
the good side of the margin, the row is no worse; if all of it is beyond the margin, worse; otherwise it is
unclear.
Piaggio et al., "Reporting of noninferiority and equivalence randomized trials", JAMA 308 (2012), figure 1.
"""

from dataclasses import dataclass
from math import floor, log10
from statistics import fmean
from typing import Literal

from scalestudy.analysis import sequential
from scalestudy.analysis.divergence import FailedRun
from scalestudy.analysis.estimate import NOTHING, Estimate, gains_of
from scalestudy.analysis.measures import Measures, find_baseline
from scalestudy.analysis.runs import Key, all_foreign
from scalestudy.config.metric_senses import Better, Sense, gain
from scalestudy.config.quality_margin import QualityMargin

VerdictKind = Literal[
    "reference",
    "no-worse",
    "worse",
    "unclear",
    "no-reference",
    "no-direction",
    "no-margin",
    "diverged",
    "chance",
    "collapsed",
    "unknown",
]
FAILED = ("diverged", "chance", "collapsed")
"""Verdicts on rows with a run that learned nothing."""
MARGIN = 0.02
"""Default accepted loss of quality: a share of the scale for metrics that have one, otherwise relative."""
OF_ERROR = 0.5
"""Upper bound of the default margin for metrics with a scale, as a share of the reference's error.
With it, accuracy and error rate of one model have the same margin."""


@dataclass(frozen=True)
class FailedRuns:
    """Runs of a row that learned nothing.

    Attributes:
        first: The first of them.
        count: How many there are.
        runs: How many runs the row has.
        digits: Decimals of its quality in text.
    """

    first: FailedRun
    count: int
    runs: int
    digits: int


@dataclass(frozen=True)
class UnfitReference:
    """A row that nothing can be compared with: runs of it failed, or its quality is unknown."""

    key: Key
    failed: FailedRuns | None = None


@dataclass(frozen=True)
class Verdict:
    """Quality of one row compared with its reference, without words (`wording.verdicts`).

    Attributes:
        change: Quality minus the reference's quality, paired by seed.
        reference: The row that it is compared with.
        seems_worse: Whether the estimate is worse than the reference by more than the margin, significant or
            not, or nothing was learned. Such rows are not recommended; more runs may show that it was chance.
        margin: Accepted loss of quality, in the metric's unit; None without a comparison.
        given_up: Whether more runs would hardly show it to be no worse, though it is not shown to be worse.
        digits: Decimals that are needed to show the margin.
        needed: Seeds that would show the row no worse if it loses nothing, by the spread seen so far; None if
            that is unknown. A study that adds seeds until a verdict stands knows it from its first look.
        better: Direction of the metric, where the verdict depends on it.
        same_updates: Whether the row is no worse because it was trained by the updates of the reference.
        failed_runs: Its runs that learned nothing; None if there are none.
        unfit: The row that could not be the reference; None if there is one, or no row to take.
    """

    kind: VerdictKind
    change: Estimate = NOTHING
    reference: Key | None = None
    seems_worse: bool = False
    digits: int = 3
    given_up: bool = False
    margin: float | None = None
    needed: int | None = None
    better: Better | None = None
    same_updates: bool = False
    failed_runs: FailedRuns | None = None
    unfit: UnfitReference | None = None

    @property
    def failed(self) -> bool:
        """Whether a run of the row diverged, stayed at chance level or collapsed."""
        return self.kind in FAILED

    @property
    def relative(self) -> bool:
        """Whether the reference has several workers, because no one-worker row without failed runs exists."""
        return self.reference is not None and self.reference.workers > 1


def accepted_loss(
    reference: float,
    sense: Sense,
    margin: QualityMargin | None,
) -> float:
    """Accepted loss of a reference's quality, in the metric's unit; the default rule if `margin` is None."""
    if margin is not None:
        if margin.relative:
            return margin.value * abs(reference)
        return margin.value
    if sense.whole and sense.better:
        # A loss of .02 would triple the errors of a model with an accuracy of .99.
        error = reference
        if sense.better == "higher":
            error = sense.whole - reference
        of_scale = MARGIN * sense.whole
        of_error = OF_ERROR * max(0.0, error)
        return min(of_scale, of_error)
    return MARGIN * abs(reference)


def judge(
    key: Key,
    measures: Measures,
    margin: QualityMargin | None = None,
    reference: Key | None = None,
) -> Verdict:
    """Verdict on a row compared with `reference`, by default `find_baseline`."""
    sense = measures.senses[key]
    digits = measures.digits[key]
    if failed := _failed_runs(key, measures):
        return Verdict(
            failed.first.kind,
            seems_worse=True,
            digits=digits,
            failed_runs=failed,
        )
    if not measures.quality.values[key]:
        return Verdict("unknown", digits=digits)
    reference = reference or _baseline(key, measures)
    if reference == key:
        return Verdict("reference", Estimate(0.0), key, digits=digits)
    if incomparable := _incomparable(key, reference, measures, margin):
        return incomparable
    assert reference is not None
    assert sense.better is not None
    reference_quality = fmean(measures.quality.values[reference].values())
    accepted = accepted_loss(reference_quality, sense, margin)
    if accepted > 0:
        # A small margin needs more digits than the qualities themselves.
        digits = max(digits, -floor(log10(accepted)))
    if measures.updates[key] == measures.updates[reference]:
        return Verdict(
            "no-worse",
            Estimate(0.0, 0.0, 0.0),
            reference,
            digits=digits,
            margin=accepted,
            same_updates=True,
        )
    look, needed = None, None
    if measures.sequential:
        look = sequential.compare_sequentially(
            measures.quality,
            key,
            reference,
            accepted,
            sense.better,
        )
        change, needed = look.change, look.needed
    else:
        change, needed = sequential.compare_grid(
            measures.quality,
            key,
            reference,
            measures.looks,
            accepted,
        )
    kind = classify_change(change, accepted, sense.better)
    given_up = kind == "unclear" and look is not None and look.futile
    below = False
    # Where seeds are added until a verdict stands, a row is called worse only if a loss is shown.
    if look is not None and look.power is not None:
        below = given_up and look.loses
    elif change.value is not None:
        below = gain(change.value, sense.better) < -accepted
    return Verdict(
        kind,
        change,
        reference,
        kind == "worse" or below,
        digits,
        given_up,
        accepted,
        needed,
        sense.better,
    )


def _incomparable(
    key: Key,
    reference: Key | None,
    measures: Measures,
    margin: QualityMargin | None,
) -> Verdict | None:
    """Verdict on a row that nothing can be compared with, or by no known scale; None if it can be compared."""
    sense = measures.senses[key]
    digits = measures.digits[key]
    unfit = _unfit(reference, measures)
    if reference is None or unfit:
        return Verdict("no-reference", digits=digits, unfit=unfit)
    if sense.better is None:
        return Verdict("no-direction")
    foreign = all_foreign(measures.groups[key])
    if foreign and margin is None and sense.bounded is None and not sense.whole:
        # A default share would be of a scale that nobody stated.
        return Verdict("no-margin")
    return None


def _baseline(key: Key, measures: Measures) -> Key | None:
    """The row that `key` is compared with: if a run of it failed, the smallest row of the series without."""
    baseline = find_baseline(key, measures.groups)
    if baseline is None or not measures.failed[baseline]:
        return baseline
    healthy = []
    for row in measures.groups:
        if row.series == key.series and not measures.failed[row]:
            healthy.append(row)
    # A row alone would be compared with itself, and hide that the baseline failed.
    if len(healthy) < 2:
        return baseline
    return min(healthy, key=lambda row: row.workers)


def _failed_runs(key: Key, measures: Measures) -> FailedRuns | None:
    """The runs of a row that learned nothing; None if there are none."""
    failed = measures.failed[key]
    if not failed:
        return None
    runs = len(measures.trained[key])
    return FailedRuns(failed[0], len(failed), runs, measures.digits[key])


def _unfit(reference: Key | None, measures: Measures) -> UnfitReference | None:
    """Why rows cannot be compared with a reference; None if they can, or if there is none."""
    if reference is None:
        return None
    if not measures.quality.values[reference]:
        return UnfitReference(reference)
    failed = _failed_runs(reference, measures)
    if failed is None:
        return None
    return UnfitReference(reference, failed)


def classify_change(
    change: Estimate,
    margin: float,
    better: Better,
) -> Literal["no-worse", "worse", "unclear"]:
    """Compare the interval of a change with `margin`, a length in the metric's own unit."""
    if change.low is None or change.high is None:
        return "unclear"
    low, high = gains_of(change.low, change.high, better)
    # Piaggio et al. (JAMA 2012), figure 1: where the whole interval lies decides, not the estimate.
    if low >= -margin:
        return "no-worse"
    if high < -margin:
        return "worse"
    return "unclear"
