"""Quality compared with the one-worker runs: does the model still learn as well?

The interval of the difference, paired by seed, decides, at a level for repeated looks: if all of it is on
the good side of the margin, the row is no worse; if all of it is beyond the margin, worse; otherwise it is
unclear.
Piaggio et al., "Reporting of noninferiority and equivalence randomized trials", JAMA 308 (2012), figure 1.
How many runs of each row failed is counted, too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, floor, log10
from statistics import fmean
from typing import Literal

from scalestudy.analysis import sequential
from scalestudy.analysis.measures import Measures, find_baseline
from scalestudy.analysis.runs import Key, Planned, key_of
from scalestudy.analysis.statistics import NOTHING, SIGNIFICANT, Estimate
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
class Verdict:
    """Quality of one row compared with its reference.

    Attributes:
        sentence: The verdict in words, without a full stop.
        change: Quality minus the reference's quality, paired by seed.
        reference: The row that it is compared with.
        seems_worse: Whether the estimate is worse than the reference by more than the margin, significant or
            not, or nothing was learned. Such rows are not recommended; more runs may show that it was chance.
        margin: Accepted loss of quality, in the metric's unit; None without a comparison.
        given_up: Whether more runs would hardly show it to be no worse, though it is not shown to be worse.
        digits: Decimals that are needed to show the margin.
        needed: Seeds that would show the row no worse if it loses nothing, by the spread seen so far; None if
            that is unknown. A study that adds seeds until a verdict stands knows it from its first look.
    """

    kind: VerdictKind
    sentence: str
    change: Estimate = NOTHING
    reference: Key | None = None
    seems_worse: bool = False
    digits: int = 3
    given_up: bool = False
    margin: float | None = None
    needed: int | None = None

    @property
    def failed(self) -> bool:
        """Whether a run of the row diverged, stayed at chance level or collapsed."""
        return self.kind in FAILED

    @property
    def relative(self) -> bool:
        """Whether the reference has several workers, because no one-worker row without failed runs exists."""
        return self.reference is not None and self.reference.workers > 1


_NO_DIRECTION = Verdict(
    "no-direction", "no verdict: it is not known whether higher or lower is better"
)
_NO_MARGIN = Verdict(
    "no-margin", "no verdict: the scale of the metric is not known (--quality-margin)"
)


def accepted_loss(
    reference: float, sense: Sense, margin: QualityMargin | None
) -> float:
    """Accepted loss of a reference's quality, in the metric's unit; the default rule if `margin` is None."""
    if margin is not None:
        return margin.value * (abs(reference) if margin.relative else 1.0)
    if sense.whole and sense.better:
        error = sense.whole - reference if sense.better == "higher" else reference
        return min(MARGIN * sense.whole, OF_ERROR * max(0.0, error))
    return MARGIN * abs(reference)


def judge(
    key: Key,
    measures: Measures,
    margin: QualityMargin | None = None,
    reference: Key | None = None,
) -> Verdict:
    """Verdict on a row compared with `reference`, by default `find_baseline`."""
    sense, digits = measures.senses[key], measures.digits[key]
    if failed := _failed(key, measures):
        return failed
    if not measures.quality.values[key]:
        return Verdict("unknown", "unknown", digits=digits)
    reference = reference or _baseline(key, measures)
    if reference == key:
        return Verdict("reference", "the reference", Estimate(0.0), key, digits=digits)
    unfit = _unfit(reference, measures)
    if reference is None or unfit:
        return Verdict(
            "no-reference",
            unfit or "no finished one-worker run to compare with",
            digits=digits,
        )
    foreign = all(run.foreign for run in measures.groups[key])
    if sense.better is None or (
        foreign and margin is None and sense.bounded is None and not sense.whole
    ):
        return _NO_DIRECTION if sense.better is None else _NO_MARGIN
    margin_length = accepted_loss(
        fmean(measures.quality.values[reference].values()), sense, margin
    )
    if (
        margin_length > 0
    ):  # a small margin needs more digits than the qualities themselves
        digits = max(digits, -floor(log10(margin_length)))
    equal = measures.updates[key] == measures.updates[reference]
    look, needed = None, None
    if equal:
        change = Estimate(0.0, 0.0, 0.0)
    elif measures.sequential:
        look = sequential.compare_sequentially(
            measures.quality, key, reference, margin_length, sense.better
        )
        change, needed = look.change, look.needed
    else:
        change, needed = sequential.compare_grid(
            measures.quality, key, reference, measures.looks, margin_length
        )
    kind = classify_change(change, margin_length, sense.better)
    below = (
        change.value is not None and gain(change.value, sense.better) < -margin_length
    )
    given_up = kind == "unclear" and look is not None and look.futile
    if look is not None and look.power is not None:
        below = given_up and look.loses
    sentence = _in_words(kind, change, margin_length, sense.better, digits)
    if equal:
        sentence = f"no worse (the same updates as {reference.label})"
    seems_worse = kind == "worse" or below
    return Verdict(
        kind,
        sentence,
        change,
        reference,
        seems_worse,
        digits,
        given_up,
        margin_length,
        needed,
    )


def _baseline(key: Key, measures: Measures) -> Key | None:
    """The row that `key` is compared with: if a run of it failed, the smallest row of the series without."""
    baseline = find_baseline(key, measures.groups)
    if baseline is None or not measures.failed[baseline]:
        return baseline
    healthy = [
        row
        for row in measures.groups
        if row.series == key.series and not measures.failed[row]
    ]
    return min(healthy, key=lambda row: row.workers) if len(healthy) > 1 else baseline


def _failed(key: Key, measures: Measures) -> Verdict | None:
    """Verdict from the first of a row's failed runs, with the share of failed runs; None if none failed."""
    runs, failed = measures.trained[key], measures.failed[key]
    if not failed:
        return None
    share = "" if len(runs) == 1 else f"{len(failed)} of {len(runs)} runs "
    return Verdict(
        failed[0].kind,
        share + failed[0].sentence,
        seems_worse=True,
        digits=measures.digits[key],
    )


def _unfit(reference: Key | None, measures: Measures) -> str | None:
    """Why rows cannot be compared with a reference; None if they can, or if there is none."""
    if reference is None:
        return None
    if not measures.quality.values[reference]:
        return f"the quality of {reference.label} is unknown"
    failed = _failed(reference, measures)
    return (
        f"{reference.label} cannot be the reference: {failed.sentence}"
        if failed
        else None
    )


def classify_change(
    change: Estimate, margin: float, better: Better
) -> Literal["no-worse", "worse", "unclear"]:
    """Compare the interval of a change with `margin`, a length in the metric's own unit."""
    if change.low is None or change.high is None:
        return "unclear"
    low, high = sorted((gain(change.low, better), gain(change.high, better)))
    return "no-worse" if low >= -margin else "worse" if high < -margin else "unclear"


def _in_words(
    kind: VerdictKind, change: Estimate, margin: float, better: Better, digits: int
) -> str:
    if change.value is None:
        return "not enough runs to tell (a run ended without a finite quality)"
    if change.low is None or change.high is None:
        return f"not enough runs to tell ({format_signed(change.value, digits)} between single runs)"
    low, high = sorted((gain(change.low, better), gain(change.high, better)))
    if kind == "worse":
        return f"worse by {_length(-high, digits)} to {_length(-low, digits)}"
    if kind == "no-worse":
        return _no_worse(low, high, margin, better, digits)
    between = f"between {format_signed(change.low, digits)} and {format_signed(change.high, digits)}"
    return f"not enough runs to tell ({between}, with a margin of {_length(margin, digits)})"


def _no_worse(
    low: float, high: float, margin: float, better: Better, digits: int
) -> str:
    """Words for a gain from `low` to `high` that is no loss beyond `margin`."""
    if high < 0:
        accepted = f"within the accepted {_length(margin, digits)}"
        return (
            f"worse by {_length(-high, digits)} to {_length(-low, digits)}, {accepted}"
        )
    if low > 0:
        return f"no worse (better by {_length(low, digits)} to {_length(high, digits)})"
    side = "below" if better == "higher" else "above"
    return f"no worse (at most {_length(max(0.0, -low), digits)} {side})"


def format_signed(value: float, digits: int = 3) -> str:
    """A difference with its sign, with a true minus sign: `+0.012`, `−0.004`."""
    return ("−" if value < 0 else "+") + f"{abs(value):.{digits}f}"


def _length(value: float, digits: int) -> str:
    least = 10.0**-digits
    return f"<{least:.{digits}f}" if 0 < value < least / 2 else f"{value:.{digits}f}"


@dataclass(frozen=True)
class Failures:
    """How many runs of a row ended in an error or learned nothing."""

    failed: int
    runs: int

    @property
    def share(self) -> float:
        """Share of failed runs; 0 if there was none."""
        return self.failed / self.runs if self.runs else 0.0

    def exceed(self, other: "Failures") -> bool:
        """Whether significantly more runs fail than of another row (Fisher's exact test, one-sided)."""
        failed, runs = self.failed + other.failed, self.runs + other.runs
        more = sum(
            comb(failed, count) * comb(runs - failed, self.runs - count)
            for count in range(self.failed, min(failed, self.runs) + 1)
        )
        return self.share > other.share and more / comb(runs, self.runs) <= SIGNIFICANT

    def __str__(self) -> str:
        return f"{self.failed} of {self.runs} runs"


def count_failures(
    keys: Sequence[Key], measures: Measures, planned: Sequence[Planned]
) -> dict[Key, Failures]:
    """Count the failed trainings of every row: those that learned nothing, and those that ended in an error.

    Rows with equal updates share their trainings.
    """
    errors = Counter(
        key_of(point.strategy, point.workers, dict(point.swept))
        for point in planned
        if point.state == "failed"
    )
    return {
        key: Failures(
            len(measures.failed[key]) + errors[key],
            len(measures.trained[key]) + errors[key],
        )
        for key in keys
    }


def pool(
    failures: Mapping[Key, Failures], keys: Iterable[Key], measures: Measures
) -> Failures:
    """Failures of several rows together, those with equal updates once."""
    rising = sorted(keys, key=lambda key: failures[key].failed)
    most = {measures.updates[key]: failures[key] for key in rising}
    return Failures(
        sum(row.failed for row in most.values()), sum(row.runs for row in most.values())
    )
