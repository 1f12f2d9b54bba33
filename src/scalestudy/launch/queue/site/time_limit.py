"""Slurm's notation of time, and how long a point may take."""

import re

from scalestudy.study.point import Point

_FORMS = re.compile(r"(?:(?P<d>\d+)-)?(?P<h>\d+):(?P<m>\d\d):(?P<s>\d\d)")

LONGEST = 10_000 * 24 * 3600


def seconds(text: str) -> int:
    """Seconds of "HH:MM:SS" or "D-HH:MM:SS".

    Raises:
        ValueError: If it is neither, or no time at all.
    """
    match = _FORMS.fullmatch(text.strip())
    if match is None:
        raise ValueError('a time as "HH:MM:SS" or "D-HH:MM:SS"')
    days, hours, minutes, rest = (int(match[key] or 0) for key in "dhms")
    total = ((days * 24 + hours) * 60 + minutes) * 60 + rest
    if minutes > 59 or rest > 59 or not 0 < total <= LONGEST:
        raise ValueError('a time above 0, of at most 10000 days, as "HH:MM:SS" or "D-HH:MM:SS"')
    return total


def notation(total: int) -> str:
    """Slurm's notation of a number of seconds, rounded up to a minute, which is Slurm's resolution."""
    minutes = -(-total // 60)
    days, minutes = divmod(minutes, 24 * 60)
    clock = f"{minutes // 60:02}:{minutes % 60:02}:00"
    return f"{days}-{clock}" if days else clock


def clock(total: int) -> str:
    """PBS's notation of a number of seconds, rounded up to a minute: hours, however many, "36:00:00"."""
    minutes = -(-total // 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:00"


def limit(point: Point, one_worker: str, scaling: str, minimum: str) -> int:
    """Seconds that a point may take: of one worker, shared by its workers where `scaling` says so.

    `virtual` workers share nothing: one device computes them all.
    """
    whole = seconds(one_worker)
    if scaling == "none" or not point.traits.timed:
        return whole
    return min(whole, max(seconds(minimum), -(-whole // point.workers)))
