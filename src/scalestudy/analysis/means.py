"""Means over runs of what not every run may have told: one blank leaves a blank."""

from collections.abc import Iterable
from statistics import fmean


def all_told(values: Iterable[float | None]) -> list[float] | None:
    """The values; None if there are none, or if one of them is unknown."""
    every = list(values)
    known = [each for each in every if each is not None]
    return known if known and len(known) == len(every) else None


def mean_of(values: Iterable[float | None]) -> float | None:
    """Their mean; None likewise."""
    known = all_told(values)
    return fmean(known) if known else None


def sum_of(values: Iterable[float | None]) -> float | None:
    """Their sum; None likewise."""
    known = all_told(values)
    return sum(known) if known else None


def largest_of(values: Iterable[float | None]) -> float | None:
    """The largest; None likewise."""
    known = all_told(values)
    return max(known) if known else None
