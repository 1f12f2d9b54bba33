"""Format and parse times, sizes and other quantities, in one notation for terminal, report and messages."""

import re
from math import floor, log10

# Largest first: the first one that fits is taken.
PREFIXES = (
    ("E", 1e18),
    ("P", 1e15),
    ("T", 1e12),
    ("G", 1e9),
    ("M", 1e6),
    ("k", 1e3),
)
SIZES = (
    ("GiB", 2**30),
    ("MiB", 2**20),
    ("KiB", 2**10),
)
TIMES = {
    "s": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
"""Units of time in seconds. `m` is minutes, as of other tools on the command line."""
_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,12})?) ?([A-Za-z]+)"


def duration(seconds: float) -> str:
    """Format a duration: `0.05 s`, `1.2 s`, `42 s`, `2:05 min` or `1:02:05 h`."""
    # Each limit is where the next format would round up: 59.6 s is a minute, 9.96 s is 10 s.
    whole = round(seconds)
    if seconds < 0.995:
        return f"{seconds:.2f} s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if whole < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h"


def bytes_of(text: str) -> int:
    """Parse a whole number of binary units, such as `32 MiB`, to bytes.

    Raises:
        ValueError: If the text has another form or is zero; the message describes the form.
    """
    factors = dict(SIZES)
    match = re.fullmatch(r"([1-9]\d*) (\w+)", text)
    if match is None or match[2] not in factors:
        raise ValueError('a size such as "32 MiB" (KiB, MiB, GiB)')
    number, unit = match.groups()
    return int(number) * factors[unit]


def seconds_of(text: str) -> float:
    """Parse a time, such as `90 s`, `90min`, `30m`, `2.5h`, `1h30m` or `1d 12h`, to seconds.

    Raises:
        ValueError: If the text has another form, names a unit after a smaller one, or is zero.
    """
    text = text.strip()
    seconds = 0.0
    lengths = []
    for number, unit in re.findall(_NUMBER, text):
        length = TIMES.get(unit, 0.0)
        lengths.append(length)
        seconds += float(number) * length
    # findall skips what it does not know, so the text as a whole is matched too.
    whole = re.fullmatch(f"{_NUMBER}(?: ?{_NUMBER})*", text)
    known = 0.0 not in lengths
    # A set, so that a unit that comes twice is refused.
    from_large_to_small = lengths == sorted(set(lengths), reverse=True)
    if whole is None or not known or not from_large_to_small or seconds == 0:
        raise ValueError(
            'a time above 0 as "90min" or "1h30m", in s, min (or m), h or d'
        )
    return seconds


def size(count: float) -> str:
    """Format bytes in binary units with three digits: `64 MiB`."""
    for unit, factor in SIZES:
        if count >= factor:
            number = count / factor
            # 1000 to 1023 of a unit have a fourth digit, which three would write as an exponent.
            digits = 4 if number >= 1000 else 3
            return f"{number:.{digits}g} {unit}"
    return f"{count:g} B"


def cost(hours: float, of: str = "", beside: float = 0.0) -> str:
    """Format a cost with three digits in a readable unit: `4.57 worker-hours`, `29.8 s`.

    Args:
        hours: Number of hours.
        of: Name of the billed resource ("worker"), to prefix the unit; "" for the unit alone.
        beside: Number of hours of a cost that stands beside it; the larger of both chooses the unit.
    """
    names = ["h", "min", "s"]
    if of:
        names = [f"{of}-hours", f"{of}-minutes", f"{of}-seconds"]
    value, larger, name = hours, max(hours, beside), names[0]
    for smaller in names[1:]:
        # From 0.9995 on, three digits round up to one of the larger unit.
        if 0 < larger < 0.9995:
            value, larger, name = value * 60, larger * 60, smaller
    return f"{_three(value)} {name}"


def three_digits(value: float) -> str:
    """Format a number with three digits, as people write it: `0.05`, `12.1`, `1,013`."""
    # From here on, `g` would round to four digits and write an exponent.
    if value >= 999.5:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def format_scaled(value: float, unit: str) -> str:
    """Format a quantity with a decimal prefix and three digits: `2.02 MFLOP`."""
    for prefix, factor in PREFIXES:
        if value >= 0.9995 * factor:
            return f"{_three(value / factor)} {prefix}{unit}"
    return f"{_three(value)} {unit}"


def _three(value: float) -> str:
    """Format three significant digits, never with an exponent."""
    if value <= 0:
        return "0"
    if value >= 99.95:
        return f"{value:,.0f}"
    # The factor lifts what rounds up to the next power of ten, such as 9.996 to 10.0.
    before_the_point = floor(log10(value * 1.0005)) + 1
    decimals = max(0, 3 - before_the_point)
    return f"{value:.{decimals}f}"
