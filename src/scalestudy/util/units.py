"""Format and parse times, sizes and other quantities, in one notation for terminal, report and messages."""

import re
from math import floor, log10

PREFIXES = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))
SIZES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
TIMES = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""Units of time in seconds. `m` is minutes, as of other tools on the command line."""
_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?([A-Za-z]+)"


def duration(seconds: float) -> str:
    """Format a duration: `0.05 s`, `1.2 s`, `42 s`, `2:05 min` or `1:02:05 h`."""
    whole = round(seconds)
    if whole < 60:
        digits = 2 if seconds < 0.995 else 1 if seconds < 9.95 else 0
        return f"{seconds:.{digits}f} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"


def bytes_of(text: str) -> int:
    """Parse a whole number of binary units, such as `32 MiB`, to bytes.

    Raises:
        ValueError: If the text has another form or is zero; the message describes the form.
    """
    match = re.fullmatch(r"([1-9]\d*) (\w+)", text)
    if match is None or match[2] not in dict(SIZES):
        raise ValueError('a size such as "32 MiB" (KiB, MiB, GiB)')
    return int(match[1]) * dict(SIZES)[match[2]]


def seconds_of(text: str) -> float:
    """Parse a time, such as `90 s`, `90min`, `30m`, `2.5h`, `1h30m` or `1d 12h`, to seconds.

    Raises:
        ValueError: If the text has another form, names a unit after a smaller one, or is zero.
    """
    text = text.strip()
    parts = re.findall(_NUMBER, text)
    units = [TIMES.get(unit, 0.0) for _, unit in parts]
    from_large_to_small = units == sorted(set(units), reverse=True)
    seconds = sum(
        float(number) * unit for (number, _), unit in zip(parts, units, strict=True)
    )
    whole = re.fullmatch(f"{_NUMBER}(?: ?{_NUMBER})*", text)
    if whole is None or 0.0 in units or not from_large_to_small or seconds == 0:
        raise ValueError(
            'a time above 0 as "90min" or "1h30m", in s, min (or m), h or d'
        )
    return seconds


def size(count: float) -> str:
    """Format bytes in binary units with three digits: `64 MiB`."""
    for unit, factor in SIZES:
        if count >= factor:
            digits = 4 if count / factor >= 1000 else 3
            return f"{count / factor:.{digits}g} {unit}"
    return f"{count:g} B"


def cost(hours: float, of: str = "", beside: float = 0.0) -> str:
    """Format a cost with three digits in a readable unit: `4.57 worker-hours`, `29.8 s`.

    Args:
        hours: Number of hours.
        of: Name of the billed resource ("worker"), to prefix the unit; "" for the unit alone.
        beside: Number of hours of a cost that stands beside it; the larger of both chooses the unit.
    """
    names = ("hours", "minutes", "seconds") if of else ("h", "min", "s")
    value, larger, name = hours, max(hours, beside), names[0]
    for smaller in names[1:]:
        if 0 < larger < 0.9995:
            value, larger, name = value * 60, larger * 60, smaller
    return f"{_three(value)} {of}-{name}" if of else f"{_three(value)} {name}"


def three_digits(value: float) -> str:
    """Format a number with three digits, as people write it: `0.05`, `12.1`, `1,013`."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def format_scaled(value: float, unit: str) -> str:
    """Format a quantity with a decimal prefix and three digits: `2.02 MFLOP`."""
    for prefix, factor in PREFIXES:
        if value >= 0.9995 * factor:
            return f"{_three(value / factor)} {prefix}{unit}"
    return f"{_three(value)} {unit}"


def _three(value: float) -> str:
    """Format three significant digits, never with an exponent."""
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - floor(log10(value * 1.0005)))}f}" if value > 0 else "0"
