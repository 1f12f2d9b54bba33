"""Does the model still learn as well? Quality held against the one-worker runs, by a margin.

The question is one of non-inferiority: not whether there is any difference, which enough runs always show,
but whether it is smaller than what one accepts. The 95 % interval of the difference decides: wholly on the
good side of the margin, no worse; wholly beyond it, worse; else it is not settled. Each error is then made in
2.5 % of studies at most, whatever the number of seeds; more of them only settle more. Sources: Piaggio et
al., "Reporting of noninferiority and equivalence randomized trials", JAMA 308 (2012), figure 1; ICH E9,
"Statistical principles for clinical trials" (1998), section 3.3.2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scalestudy.analysis.learned import failure
from scalestudy.analysis.measures import Measures
from scalestudy.analysis.runs import Key, Run
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.study.metrics import Better, gain
from scalestudy.study.strategies import references

VerdictKind = Literal[
    "reference",
    "no-worse",
    "worse",
    "unclear",
    "no-reference",
    "no-direction",
    "diverged",
    "chance",
    "unknown",
]
FAILED = ("diverged", "chance")
"""Verdicts on what learned nothing."""
MARGIN = 0.02
"""Loss of quality that is accepted, as a share of the reference's quality."""


@dataclass(frozen=True)
class Verdict:
    """Quality of one row against its reference."""

    kind: VerdictKind
    sentence: str
    """The verdict in words, without a full stop."""
    change: Estimate = NOTHING
    """Quality less the reference's quality, paired by seed."""
    reference: Key | None = None
    seems_worse: bool = False
    """Whether the estimate lies further to the bad side of the reference than the margin, proven or not, or
    nothing was learned. What seems worse is not advised: it is for more runs to show that it was chance."""
    digits: int = 3
    """Decimals of the metric that tell the margin."""

    @property
    def failed(self) -> bool:
        """Whether the row diverged or stands at chance."""
        return self.kind in FAILED


def find_reference(key: Key, groups: Mapping[Key, Sequence[Run]]) -> Key | None:
    """The one-worker row with the same other swept values; its timing does not matter here."""
    for strategy in (key.strategy, *references()):
        if key.with_(strategy, 1) in groups:
            return key.with_(strategy, 1)
    return None


def judge(key: Key, measures: Measures, reference: Key | None = None, margin: float = MARGIN) -> Verdict:
    """Verdict on a row against `reference` (by default its own one-worker row)."""
    better = measures.senses[key].better
    digits = measures.digits[key]
    failed = failure(measures.groups[key], measures.senses[key], digits)
    if failed:
        return Verdict(failed.kind, failed.sentence, seems_worse=True, digits=digits)
    if not measures.quality.values[key]:
        return Verdict("unknown", "not known", digits=digits)
    reference = reference or find_reference(key, measures.groups)
    if reference == key:
        return Verdict("reference", "the reference", Estimate(0.0), key, digits=digits)
    unfit = _unfit(reference, measures, digits)
    if reference is None or unfit:
        return Verdict("no-reference", unfit or "no finished one-worker run to compare with", digits=digits)
    if better is None:
        return Verdict("no-direction", "no verdict: whether higher or lower is better is not known")
    base = measures.quality.values[reference].values()
    allowed = margin * abs(sum(base) / len(base))
    change = measures.quality.difference(key, reference)
    kind = decide(change, allowed, better)
    seems_worse = kind == "worse" or (change.value is not None and gain(change.value, better) < -allowed)
    sentence = _in_words(kind, change, allowed, better, digits)
    return Verdict(kind, sentence, change, reference, seems_worse, digits)


def _unfit(reference: Key | None, measures: Measures, digits: int) -> str | None:
    """Why nothing can be held against a reference; None where it can, or where there is none."""
    if reference is None:
        return None
    if not measures.quality.values[reference]:
        return f"the quality of {reference.label} is not known"
    if failure(measures.groups[reference], measures.senses[reference], digits):
        return f"{reference.label} learned nothing that it could be held against"
    return None


def decide(change: Estimate, margin: float, better: Better) -> Literal["no-worse", "worse", "unclear"]:
    """Where the interval of a change lies against `margin`, a length in the metric's own unit."""
    if change.low is None or change.high is None:
        return "unclear"
    low, high = sorted((gain(change.low, better), gain(change.high, better)))
    return "no-worse" if low >= -margin else "worse" if high < -margin else "unclear"


def _in_words(kind: VerdictKind, change: Estimate, margin: float, better: Better, digits: int) -> str:
    if change.value is None:
        return "not enough runs to tell: a run ended without a finite quality"
    if change.low is None or change.high is None:
        return f"not enough runs to tell: {signed(change.value, digits)} between single runs"
    low, high = sorted((gain(change.low, better), gain(change.high, better)))
    if kind == "worse":
        return f"worse by {_length(-high, digits)} to {_length(-low, digits)}"
    if kind == "no-worse" and low > 0:
        return f"no worse: better by {_length(low, digits)} to {_length(high, digits)}"
    if kind == "no-worse":
        return f"no worse: at most {_length(-low, digits)} {'below' if better == 'higher' else 'above'}"
    between = f"between {signed(change.low, digits)} and {signed(change.high, digits)}"
    return f"not enough runs to tell: {between}, where {_length(margin, digits)} is accepted"


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign, by a true minus: `+0.012`, `−0.004`."""
    return ("−" if value < 0 else "+") + f"{abs(value):.{digits}f}"


def _length(value: float, digits: int) -> str:
    least = 10.0**-digits
    return f"<{least:.{digits}f}" if 0 < value < least / 2 else f"{value:.{digits}f}"
