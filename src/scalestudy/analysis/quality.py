"""Does the model still learn as well? Quality held against the one-worker runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scalestudy.analysis.measures import Measures
from scalestudy.analysis.runs import Key, Run
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.study.strategies import references

VerdictKind = Literal["reference", "no-worse", "worse", "unclear", "no-reference"]
MARGIN = 0.02
"""Loss of quality that may stay hidden in an interval, as a share of the reference's quality;
a wider interval is called "not enough runs to tell" instead of "no worse"."""


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
    """Whether the estimate lies further below the reference than the margin, proven or not. What seems
    worse is not advised: it is for more runs to show that it was chance."""


def find_reference(key: Key, groups: Mapping[Key, Sequence[Run]]) -> Key | None:
    """The one-worker row with the same other swept values; its timing does not matter here."""
    for strategy in (key.strategy, *references()):
        if key.with_(strategy, 1) in groups:
            return key.with_(strategy, 1)
    return None


def judge(key: Key, measures: Measures, reference: Key | None = None, margin: float = MARGIN) -> Verdict:
    """Verdict on a row against `reference` (by default its own one-worker row)."""
    reference = reference or find_reference(key, measures.groups)
    if reference is None:
        return Verdict("no-reference", "no finished one-worker run to compare with")
    if reference == key:
        return Verdict("reference", "the reference", Estimate(0.0), key)
    base = measures.quality.values[reference].values()
    change = measures.quality.difference(key, reference)
    allowed = margin * abs(sum(base) / len(base))
    kind, sentence = _in_words(change, allowed)
    seems_worse = kind == "worse" or (change.value is not None and change.value < -allowed)
    return Verdict(kind, sentence, change, reference, seems_worse)


def _in_words(change: Estimate, margin: float) -> tuple[VerdictKind, str]:
    if change.value is None:
        return "unclear", "not enough runs to tell: a run ended without a finite quality"
    if change.low is None or change.high is None:
        return "unclear", f"not enough runs to tell: {signed(change.value)} between single runs"
    if change.high < 0:
        return "worse", f"worse by {_digits(-change.high)} to {_digits(-change.low)}"
    if -change.low > margin:
        return "unclear", f"not enough runs to tell: between {signed(change.low)} and {signed(change.high)}"
    if change.low > 0:
        return "no-worse", f"no worse: better by {_digits(change.low)} to {_digits(change.high)}"
    return "no-worse", f"no worse: at most {_digits(-change.low)} below"


def signed(value: float) -> str:
    """A difference with its sign, by a true minus: `+0.012`, `−0.004`."""
    return ("−" if value < 0 else "+") + f"{abs(value):.3f}"


def _digits(value: float) -> str:
    return "<0.001" if 0 < value < 0.0005 else f"{value:.3f}"
