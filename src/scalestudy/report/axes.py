"""The axis that most figures share: the number of workers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt

WIDE = 32
"""Ratio of the largest to the smallest number of workers from which the axis is logarithmic."""


def is_logarithmic(counts: Sequence[int]) -> bool:
    """Whether numbers of workers span so much that small ones would crowd on a linear axis."""
    return max(counts) / min(counts) >= WIDE


def domain(counts: Sequence[int]) -> tuple[float, float]:
    """Ends of the axis, with some room so that no point is on an edge."""
    low, high = min(counts), max(counts)
    if is_logarithmic(counts):
        return low / 1.15, high * 1.15
    room = max(0.4, 0.04 * (high - low)) if high > low else 1.0
    return low - room, high + room


def ticks(counts: Sequence[int]) -> list[int]:
    """The numbers of workers themselves; where two would overlap, only the larger."""
    chosen: list[int] = []
    for count in sorted(set(counts), reverse=True):
        near = 1.25 * count if is_logarithmic(counts) else count + max(counts) / 16
        if not chosen or near <= chosen[-1]:
            chosen.append(count)
    return chosen[::-1]


def workers(counts: Sequence[int], field: str = "workers") -> "alt.X":
    """Horizontal axis of the number of workers."""
    import altair as alt

    kind = {"type": "log", "base": 2} if is_logarithmic(counts) else {"zero": False}
    scale = alt.Scale(domain=list(domain(counts)), nice=False, **kind)
    axis = alt.Axis(values=ticks(counts), format="d", labelOverlap=True)
    return alt.X(f"{field}:Q", title="Workers", scale=scale, axis=axis)


def dodge(counts: Sequence[int], index: int, number: int) -> tuple[float, float]:
    """Shift (added, multiplied) that separates series with points at the same number of workers."""
    place = index - (number - 1) / 2
    if is_logarithmic(counts):
        return 0.0, 1.03**place
    low, high = domain(counts)
    return 0.012 * (high - low) * place, 1.0
