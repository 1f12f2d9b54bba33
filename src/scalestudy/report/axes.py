"""The axis that most figures share: worker counts, as whole numbers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

WIDE = 32
"""Ratio of the largest to the smallest worker count from which a logarithmic axis reads better."""


def is_logarithmic(counts: Sequence[int]) -> bool:
    """Whether worker counts span so much that the small ones would crowd on a linear axis."""
    return max(counts) / min(counts) >= WIDE


def domain(counts: Sequence[int]) -> tuple[float, float]:
    """Ends of the axis, a little beyond the counts so that no point sits on an edge."""
    low, high = min(counts), max(counts)
    if is_logarithmic(counts):
        return low / 1.15, high * 1.15
    room = max(0.4, 0.04 * (high - low)) if high > low else 1.0
    return low - room, high + room


def ticks(counts: Sequence[int]) -> list[int]:
    """The counts themselves; of many, the larger of two that would overlap is kept."""
    chosen: list[int] = []
    log = is_logarithmic(counts)
    for count in sorted(set(counts), reverse=True):
        if chosen and (chosen[-1] / count < 1.5 if log else chosen[-1] - count < max(counts) / 16):
            continue
        chosen.append(count)
    return chosen[::-1]


def workers(counts: Sequence[int], field: str = "workers") -> "alt.X":
    """Horizontal axis of worker counts."""
    import altair as alt

    ends = domain(counts)
    scale: dict[str, Any] = {"domain": list(ends), "nice": False, "zero": False}
    if is_logarithmic(counts):
        scale |= {"type": "log", "base": 2}
    return alt.X(
        f"{field}:Q",
        title="Workers",
        scale=alt.Scale(**scale),
        axis=alt.Axis(values=ticks(counts), format="d", labelOverlap=True),
    )


def dodge(counts: Sequence[int], index: int, number: int) -> tuple[float, float]:
    """Shift (added, multiplied) that keeps series apart whose points share a worker count."""
    place = index - (number - 1) / 2
    if is_logarithmic(counts):
        return 0.0, 1.03**place
    low, high = domain(counts)
    return 0.012 * (high - low) * place, 1.0
