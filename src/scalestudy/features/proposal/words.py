"""How values are written in a statement, and what stands in the place of one that is not known."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10

from scalestudy.analysis.statistics import Estimate
from scalestudy.features.proposal.remedy import Remedy
from scalestudy.report.format import number


@dataclass(frozen=True)
class Missing:
    """A fact that the study does not know.

    Attributes:
        why: Why, as a sentence without its full stop.
        remedy: What would supply it.
    """

    why: str
    remedy: Remedy


Fact = str | Missing


def figure(value: float, digits: int = 4) -> str:
    """A number with so many significant digits, and no more decimals: `0.01234`, `12.34`, `1,234`."""
    if not value or not isfinite(value):
        return number(value, 0)
    return number(value, max(0, digits - 1 - floor(log10(abs(value)))))


def measured(estimate: Estimate, digits: int = 2) -> str | None:
    """`3.44 (95 % interval 3.40 to 3.48)`; None without a value."""
    if estimate.value is None:
        return None
    text = number(estimate.value, digits)
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return text
    return f"{text} (95 % interval {number(estimate.low, digits)} to {number(estimate.high, digits)})"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(number: int, noun: str) -> str:
    """`1 worker`, `4 workers`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
