"""Times and sizes as a person reads them: one notation for terminal, report and messages."""

import re

SIZES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def duration(seconds: float) -> str:
    """`0.05 s`, `1.2 s`, `42 s`, `2:05 min` or `1:02:05 h`."""
    whole = round(seconds)
    if whole < 60:
        digits = 2 if seconds < 0.995 else 1 if seconds < 9.95 else 0
        return f"{seconds:.{digits}f} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"


def bytes_of(text: str) -> int:
    """Bytes of a whole number of binary units: `32 MiB`.

    Raises:
        ValueError: It is none, or zero; says what would do.
    """
    found = re.fullmatch(r"([1-9]\d*) (\w+)", text)
    if found is None or found[2] not in dict(SIZES):
        raise ValueError(f'a size as "32 MiB", in {", ".join(unit for unit, _ in reversed(SIZES))}')
    return int(found[1]) * dict(SIZES)[found[2]]


def size(count: float) -> str:
    """Bytes in binary units, three digits: `64 MiB`."""
    for unit, each in SIZES:
        if count >= each:
            return f"{count / each:.4g} {unit}" if count / each >= 1000 else f"{count / each:.3g} {unit}"
    return f"{count:g} B"


_TIME = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|h|d)")
_LENGTHS = {"s": 1, "min": 60, "h": 3600, "d": 86400}


def seconds_of(text: str) -> float:
    """Seconds of a time: `90 s`, `90min`, `2.5h`, `1d`.

    Raises:
        ValueError: It is none, or zero; says what would do.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise ValueError('a time above 0 as "90min", in s, min, h or d')
    return float(found[1]) * _LENGTHS[found[2]]
