"""Slurm's notation of time, and how long a point may take."""

import re

from scalestudy.study.point import Point

UNLIMITED = ("infinite", "unlimited", "-1")
"""Slurm's words for no limit, in capitals or not."""
FORM = (
    'a time above 0, of at most 10000 days, as Slurm writes it: "1:30:00", "90" (minutes), "2-12" '
    '(days-hours), "infinite"'
)
_FORMS = (
    re.compile(r"(?P<m>\d+)(?::(?P<s>\d\d))?"),
    re.compile(r"(?P<h>\d+):(?P<m>\d\d):(?P<s>\d\d)"),
    re.compile(r"(?P<d>\d+)-(?P<h>\d+)(?::(?P<m>\d\d)(?::(?P<s>\d\d))?)?"),
)

LONGEST = 10_000 * 24 * 3600
"""Seconds beyond which a limit is taken for a mistake."""


def seconds(text: str) -> int | None:
    """Seconds of a time as Slurm writes and takes it; None for no limit.

    The forms are those of sbatch(1), --time: "minutes", "minutes:seconds", "hours:minutes:seconds",
    "days-hours", "days-hours:minutes" and "days-hours:minutes:seconds".

    Raises:
        ValueError: If it is none of them, or no time at all. Minutes and seconds over 59 behind a larger
            unit are taken for a mistake.
    """
    text = text.strip()
    if text.lower() in UNLIMITED:
        return None
    found = next((match for form in _FORMS if (match := form.fullmatch(text)) and text.isascii()), None)
    if found is None:
        raise ValueError(FORM)
    parts = {key: int(value or 0) for key, value in found.groupdict().items()}
    days, hours, minutes, rest = (parts.get(key, 0) for key in "dhms")
    total = ((days * 24 + hours) * 60 + minutes) * 60 + rest
    if (minutes > 59 and "h" in parts) or rest > 59 or not 0 < total <= LONGEST:
        raise ValueError(FORM)
    return total


def notation(total: int | None) -> str:
    """Slurm's notation of a number of seconds, rounded up to a minute, which is Slurm's resolution."""
    if total is None:
        return "UNLIMITED"
    minutes = -(-total // 60)
    days, minutes = divmod(minutes, 24 * 60)
    clock = f"{minutes // 60:02}:{minutes % 60:02}:00"
    return f"{days}-{clock}" if days else clock


def clock(total: int) -> str:
    """PBS's notation of a number of seconds, rounded up to a minute: hours, however many, "36:00:00"."""
    minutes = -(-total // 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:00"


def limit(point: Point, one_worker: str, scaling: str, minimum: str) -> int | None:
    """Seconds that a point may take: of one worker, shared by its workers where `scaling` says so; or None.

    `virtual` workers share nothing: one device computes them all.
    """
    whole = seconds(one_worker)
    if whole is None or scaling == "none" or not point.traits.timed:
        return whole
    return min(whole, max(seconds(minimum) or 0, -(-whole // point.workers)))
