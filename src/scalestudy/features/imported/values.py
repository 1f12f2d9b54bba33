"""Numbers as people and programs write them, and the units of their columns."""

import math
import re

TIMES = {
    "ms": 1e-3, "msec": 1e-3, "milliseconds": 1e-3,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86400.0, "day": 86400.0, "days": 86400.0,
}  # fmt: skip
"""Units of time, in seconds."""
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_GROUPED_EUROPEAN = re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?")
_CLOCK = re.compile(r"(?:(\d+):)?(\d{1,3}):(\d{2}(?:\.\d+)?)")


def number(value: object, comma: bool = False) -> float | None:
    """A number; None of what is none.

    Args:
        value: A number, or a text: `1234.5`, `66,176`, `93.5 %`.
        comma: Whether the comma is the decimal sign in this file.
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _float(value)
    text = (
        str(value).strip().rstrip("%").strip().replace("\u2212", "-").replace("\u00a0", "").replace(" ", "")
    )
    if comma:
        if _GROUPED_EUROPEAN.fullmatch(text):
            text = text.replace(".", "")
        text = text.replace(",", ".")
    elif _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    return _float(text) if "_" not in text else None


def whole(value: object, comma: bool = False) -> int | None:
    """A whole number; None of what is none, or is beyond any count."""
    found = number(value, comma)
    if found is None or not math.isfinite(found) or found != int(found) or abs(found) >= 2**53:
        return None
    return int(found)


def clock(value: object) -> float | None:
    """Seconds of `1:02:05` or `2:05`; None of anything else."""
    found = _CLOCK.fullmatch(str(value).strip())
    if found is None:
        return None
    return float(found[1] or 0) * 3600 + float(found[2]) * 60 + float(found[3])


def _float(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return None
