"""Words for speed-ups: why a row has none, and against which row it is relative."""

from scalestudy.analysis.measures import Basis
from scalestudy.analysis.speed_up import (
    ExcludedTimes,
    NoBaseline,
    NoSpeedUp,
    OtherGpus,
    SpeedUp,
    UnknownRate,
)

REASON_WORDS: dict[str, str] = {
    "in turn": "virtual workers are computed one after another, so they have no speed-up",
    "asynchronous": "asynchronous: with more workers each update is of older weights, which has no speed-up",
    "no-steady-epoch": "no steady throughput: one epoch only, or resumed in all others",
    "rate-not-positive": "a throughput is not a positive number",
    "time-unknown": "its training time is unknown",
    "time-not-positive": "a training time is not a positive number",
    "unlike-samples": "processed a different number of samples than its baseline",
    "unlike-epochs": "trained for a different number of epochs than its baseline",
}
"""Reasons that name no figures."""
RATES: dict[Basis, str] = {
    "throughput": "throughput",
    "epoch": "time of an epoch",
    "training": "training time",
}
"""What a row from elsewhere may lack, as the subject of a clause."""


def describe_reason(reason: NoSpeedUp | None) -> str | None:
    """Why a row has no speed-up, without a full stop; None if it has one."""
    if reason is None:
        return None
    if isinstance(reason, str):
        return REASON_WORDS[reason]
    match reason:
        case ExcludedTimes():
            kind = "disturbed" if reason.disturbed else "oversubscribed"
            words = f"{kind}: {reason.record}"
        case OtherGpus():
            # Sorted, so that the same GPUs make the same reason, by which rows are grouped.
            names = ", ".join(sorted(reason.names))
            others = ", ".join(sorted(reason.baseline))
            words = f"its GPUs ({names}) are unlike its baseline's ({others})"
        case NoBaseline():
            words = _no_baseline(reason)
        case UnknownRate():
            rate = RATES[reason.basis]
            words = f"its {rate}, by which the others are compared, is unknown"
    return words


def _no_baseline(reason: NoBaseline) -> str:
    others = ""
    if reason.details:
        others = f" with {reason.details}"
    if reason.oversubscribed:
        return f"its one-worker run{others} was oversubscribed, so it is no baseline"
    names = " or ".join(reason.strategies)
    return f"no finished one-worker run of {names}{others} to compare with"


def describe_relative(speed: SpeedUp) -> str | None:
    """The baseline of a relative speed-up; None for an ordinary speed-up."""
    if speed.baseline is None or speed.against == 1:
        return None
    return f"relative: against {speed.baseline.label}, since there is no one-worker run to compare with"
