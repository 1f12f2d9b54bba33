"""Words for verdicts on quality: how much better or worse, by which margin that was judged, and what failed."""

from scalestudy.analysis.divergence import (
    Evidence,
    FarBelowMedian,
    LossGrew,
    LossNotFinite,
    NoBetterThanChance,
    QualityNotFinite,
)
from scalestudy.analysis.estimate import Estimate, gains_of
from scalestudy.analysis.quality import FailedRuns, UnfitReference, Verdict, VerdictKind
from scalestudy.analysis.runs import metric_label
from scalestudy.config.metric_senses import Better

VERDICT_WORDS: dict[VerdictKind, str] = {
    "reference": "the reference",
    "unknown": "unknown",
    "no-direction": "no verdict: it is not known whether higher or lower is better",
    "no-margin": "no verdict: the scale of the metric is not known (--quality-margin)",
}
"""Verdicts that name no figures."""


def describe_verdict(verdict: Verdict) -> str:
    """Words for a verdict, without a full stop."""
    if verdict.kind in VERDICT_WORDS:
        return VERDICT_WORDS[verdict.kind]
    if verdict.kind == "no-reference":
        return _no_reference(verdict.unfit)
    if verdict.failed_runs is not None:
        return describe_failed_runs(verdict.failed_runs)
    if verdict.same_updates:
        assert verdict.reference is not None
        return f"no worse (the same updates as {verdict.reference.label})"
    # Only what was compared is left, and comparing takes a direction and a margin.
    assert verdict.margin is not None
    assert verdict.better is not None
    return describe_change(
        verdict.kind,
        verdict.change,
        verdict.margin,
        verdict.better,
        verdict.digits,
    )


def _no_reference(unfit: UnfitReference | None) -> str:
    if unfit is None:
        return "no finished one-worker run to compare with"
    if unfit.failed is None:
        return f"the quality of {unfit.key.label} is unknown"
    return f"{unfit.key.label} cannot be the reference: {describe_failed_runs(unfit.failed)}"


def describe_failed_runs(failed: FailedRuns) -> str:
    """Words for the first of a row's failed runs, with the share of failed runs."""
    words = describe_failure(failed.first.evidence, failed.digits)
    if failed.runs > 1:
        return f"{failed.count} of {failed.runs} runs {words}"
    return words


def describe_failure(evidence: Evidence, digits: int) -> str:
    """Words for what shows that a run failed to learn; `digits` are the decimals of its quality."""
    if isinstance(evidence, LossNotFinite):
        text = f"diverged: the {evidence.loss} is not finite from epoch {evidence.epoch} on"
        if evidence.weight:
            text += f"; the first weight that is not is {evidence.weight}"
        return text
    if isinstance(evidence, QualityNotFinite):
        return f"diverged: {metric_label(evidence.metric)} is not finite at the end"
    if isinstance(evidence, LossGrew):
        return f"diverged: the training loss grew from {evidence.first:.3g} to {evidence.last:.3g}"
    metric = metric_label(evidence.metric)
    quality = f"{evidence.quality:.{digits}f}"
    if isinstance(evidence, NoBetterThanChance):
        chance = f"{evidence.chance:.{digits}f}"
        return f"learned nothing: {metric} {quality} is no better than {chance}, that of a constant answer"
    assert isinstance(evidence, FarBelowMedian)
    usual = f"{evidence.median:.{digits}f}"
    return f"collapsed: {metric} {quality}, where the median is {usual}"


def describe_change(
    kind: str,
    change: Estimate,
    margin: float,
    better: Better,
    digits: int,
) -> str:
    """Words for a change of quality of which the verdict is `kind`, without a full stop."""
    if change.value is None:
        return "not enough runs to tell (a run ended without a finite quality)"
    if change.low is None or change.high is None:
        side = "higher"
        if change.value < 0:
            side = "lower"
        size = f"{abs(change.value):.{digits}f}"
        return f"{size} {side} in single runs (add seeds)"
    low, high = gains_of(change.low, change.high, better)
    if kind == "worse":
        return f"worse by {_length(-high, digits)} to {_length(-low, digits)}"
    if kind == "no-worse":
        return _no_worse(low, high, margin, better, digits)
    least = format_signed(change.low, digits)
    most = format_signed(change.high, digits)
    accepted = _length(margin, digits)
    return f"not enough runs to tell (between {least} and {most}, with a margin of {accepted})"


def _no_worse(
    low: float,
    high: float,
    margin: float,
    better: Better,
    digits: int,
) -> str:
    """Words for a gain from `low` to `high` that is no loss beyond `margin`."""
    if high < 0:
        # A loss that is certain is named, though it is accepted.
        loss = f"worse by {_length(-high, digits)} to {_length(-low, digits)}"
        return f"{loss}, within the accepted {_length(margin, digits)}"
    if low > 0:
        return f"no worse (better by {_length(low, digits)} to {_length(high, digits)})"
    side = "below"
    if better == "lower":
        side = "above"
    most = _length(max(0.0, -low), digits)
    return f"no worse (at most {most} {side})"


def format_signed(value: float, digits: int = 3) -> str:
    """A difference with its sign, with a true minus sign: `+0.012`, `−0.004`."""
    sign = "−" if value < 0 else "+"
    return f"{sign}{abs(value):.{digits}f}"


def _length(value: float, digits: int) -> str:
    least = 10.0**-digits
    if 0 < value < least / 2:
        return f"<{least:.{digits}f}"
    return f"{value:.{digits}f}"
