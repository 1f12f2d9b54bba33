"""Format numbers for readers: the same decimals within a column, intervals beside the value."""

from collections.abc import Sequence
from math import floor, isfinite, log10

from scalestudy.analysis.estimate import Estimate

NOT_AVAILABLE = "n/a"
LOPSIDED = 0.1
"""Largest distance of a value from the middle of its interval for ±, as a share of half the interval."""


def time_unit(seconds: Sequence[float]) -> tuple[str, float]:
    """Unit that suits the largest of these times ("s", "min" or "h"), and its length in seconds."""
    largest = max(seconds, default=0.0)
    # Seconds up to ten minutes, minutes up to four hours: columns keep three or four digits.
    if largest < 600:
        return "s", 1.0
    if largest < 4 * 3600:
        return "min", 60.0
    return "h", 3600.0


def cost_unit(hours: Sequence[float | None]) -> tuple[str, float]:
    """Unit that suits the largest of these costs ("s", "min" or "h"), and its length in hours."""
    largest = max(filter(None, hours), default=0.0)
    if 0 < largest < 1 / 60:
        return "s", 1 / 3600
    if largest < 1:
        return "min", 1 / 60
    return "h", 1.0


def decimals(values: Sequence[float]) -> int:
    """Decimals that give the smallest value of a column about three significant digits; at most three."""
    # A zero needs no decimals.
    sizes = [abs(value) for value in values if value]
    smallest = min(sizes, default=1.0)
    if smallest >= 100:
        return 0
    if smallest >= 5:
        return 1
    if smallest >= 0.5:
        return 2
    return 3


def format_number(value: float | None, digits: int) -> str:
    """`1,234.5`, with a true minus sign; `n/a` for None and for values that are not finite."""
    if value is None or not isfinite(value):
        return NOT_AVAILABLE
    if digits:
        # Ties round up, even if floating-point arithmetic left the value slightly below.
        value *= 1 + 1e-13
    text = f"{value:,.{digits}f}"
    return text.replace("-", "−")


def with_interval(estimate: Estimate, digits: int) -> str:
    """`6.64 ± 0.11`, or `6.64 (5.10–8.90)` if the interval is asymmetric.

    The value alone if there is no interval or its width is 0.
    """
    text = format_number(estimate.value, digits)
    half = estimate.half_width
    if estimate.value is None or estimate.high is None or not half:
        return text
    shown = 10**-digits
    # "± 0.00" would say that there is no doubt.
    if half < 0.5 * shown:
        return f"{text} ± <{shown:.{digits}f}"
    # A distance that rounding hides is none.
    middle = estimate.high - half
    off_middle = abs(middle - estimate.value)
    allowed = max(LOPSIDED * half, 0.5 * shown)
    if off_middle > allowed:
        return f"{text} ({span(estimate, digits)})"
    return f"{text} ± {format_number(half, digits)}"


def span(estimate: Estimate, digits: int) -> str | None:
    """The ends of the interval, `6.54–6.75`; None without one."""
    low, high = estimate.low, estimate.high
    if low is None or high is None or low == high:
        return None
    # A dash before a minus sign would be read as another one.
    dash = " to " if low < 0 else "–"
    least = format_number(low, digits)
    most = format_number(high, digits)
    return f"{least}{dash}{most}"


def with_ends(estimate: Estimate, digits: int = 2) -> str | None:
    """`3.44 (95 % interval 3.40 to 3.48)`, for sentences; None without a value."""
    if estimate.value is None:
        return None
    text = format_number(estimate.value, digits)
    low, high = estimate.low, estimate.high
    if low is None or high is None or low == high:
        return text
    least = format_number(low, digits)
    most = format_number(high, digits)
    return f"{text} (95 % interval {least} to {most})"


def significant(value: float, digits: int = 4) -> str:
    """A number with this many significant digits, and no more decimals: `0.01234`, `12.34`, `1,234`."""
    if not value or not isfinite(value):
        return format_number(value, 0)
    exponent = floor(log10(abs(value)))
    # From 1 on, the digits before the point are one more than the exponent.
    after_point = digits - (1 + exponent)
    return format_number(value, max(0, after_point))
