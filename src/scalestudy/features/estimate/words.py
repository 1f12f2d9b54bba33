"""What an estimate says, in one sentence or two."""

from collections.abc import Sequence

from scalestudy.features.estimate.records import ForeseenPoint
from scalestudy.units import duration

LOSSES = {
    "computing": "computing that does not shrink (workers of a node slow each other)",
    "fixed": "the fixed cost of steps",
    "input": "waiting for input",
    "exchange": "exchange that is not hidden",
    "slowest": "waiting for the slowest worker",
    "uneven": "uneven slices of the batch",
}
"""What keeps from ideal scaling, by its part."""
BRIEF = {
    "computing": "contention", "fixed": "fixed cost", "input": "input", "exchange": "exchange",
    "slowest": "slowest worker", "uneven": "uneven slices",
}  # fmt: skip
"""The same in a word or two, for tables."""


def sentence(
    strategy: str,
    points: Sequence[ForeseenPoint],
    worth: tuple[int | None, int | None, int | None],
    fastest: int,
    target: float,
) -> str:
    """Up to where a strategy is expected to pay, and what ends it.

    Args:
        strategy: Its name.
        points: By workers, rising, from one.
        worth: Most workers whose efficiency reaches the target: by medians, by lower ends, by upper ends.
        fastest: Workers with the least training time.
        target: The efficiency.
    """
    by_count = {each.workers: each for each in points}
    counts, best = list(by_count), by_count[fastest]
    count, low, high = (1 if each is None else each for each in worth)
    most = counts[-1]
    ends = "" if low == high else f" (95 % interval {low} to {high})"
    if count == most:
        text = f"{strategy} is expected to pay up to {count} workers{ends}, the most that were looked at"
        text += _cause(by_count[most])
    else:
        beyond = by_count[counts[counts.index(count) + 1]]
        number = f"up to {count} workers" if count > 1 else "on one worker only"
        text = f"{strategy} is expected to pay {number}{ends}: at {beyond.workers} its efficiency is "
        text += f"{beyond.efficiency.value:.2f}, below {target:g}{_cause(beyond)}"
    if fastest == most:
        return f"{text}. Of the numbers looked at, {most} workers take the least time."
    least = duration(best.training_seconds.value)
    return f"{text}. Beyond {fastest} workers ({least}) training takes longer."


def _cause(point: ForeseenPoint) -> str:
    if not point.dominant:
        return ""
    share = point.parts[point.dominant] / sum(point.parts.values())
    lost = LOSSES[point.dominant]
    return f"; what is lost there goes first of all to {lost} ({100 * share:.0f} % of an epoch)"
