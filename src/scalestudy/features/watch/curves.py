"""Curves and bars out of characters."""

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite, log

BLOCKS = "▁▂▃▄▅▆▇█"
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille character: four rows of two dots."""
PARTS = " ▏▎▍▌▋▊▉█"


def sparkline(values: Sequence[float], width: int) -> str:
    """The last values as one line of blocks, high ones high; what is not finite is a gap."""
    shown = _thinned(values, width)
    finite = [value for value in shown if isfinite(value)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    span = (high - low) or 1.0
    return "".join(
        BLOCKS[round((value - low) / span * (len(BLOCKS) - 1))] if isfinite(value) else " " for value in shown
    )


def braille(values: Sequence[float], width: int, height: int) -> list[str]:
    """A curve in `height` lines of `width` braille characters, each two by four dots.

    Positive values that span more than a factor of 30 are drawn by their logarithm.
    """
    shown = _stretched(_thinned(values, 2 * width), 2 * width)
    finite = [value for value in shown if isfinite(value)]
    if not finite or width < 1 or height < 1:
        return [""] * height
    if min(finite) > 0 and max(finite) / min(finite) > 30:
        shown = [log(value) if isfinite(value) else value for value in shown]
        finite = [log(value) for value in finite]
    low, high = min(finite), max(finite)
    cells = [[0] * width for _ in range(height)]
    rows = 4 * height - 1
    before: int | None = None
    for column, value in enumerate(shown):
        if not isfinite(value):
            before = None
            continue
        row = rows - round((value - low) / ((high - low) or 1.0) * rows)
        start = row if before is None else before
        for each in range(min(row, start), max(row, start) + 1):
            cells[each // 4][column // 2] |= DOTS[each % 4][column % 2]
        before = row
    return ["".join(chr(0x2800 + cell) for cell in line) for line in cells]


def meter(percent: float, width: int) -> str:
    """A bar of `width` characters, filled to this many per cent."""
    eighths = round(min(max(percent, 0.0), 100.0) / 100 * width * 8)
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (PARTS[part] if part else "")).ljust(width)


def _thinned(values: Sequence[float], most: int) -> list[float]:
    """At most so many values: means of equal stretches, in their order."""
    if len(values) <= most:
        return list(values)
    edges = [index * len(values) // most for index in range(most + 1)]
    return [sum(values[first:last]) / (last - first) for first, last in pairwise(edges)]


def _stretched(values: Sequence[float], count: int) -> list[float]:
    """So many values, those between two given ones on a line."""
    if len(values) < 2 or len(values) >= count:
        return list(values)
    found = []
    for index in range(count):
        place = index * (len(values) - 1) / (count - 1)
        left = min(int(place), len(values) - 2)
        found.append(values[left] + (place - left) * (values[left + 1] - values[left]))
    return found
