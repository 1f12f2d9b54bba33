"""Which two of many keep all from going on: found by halves, in a number of trials that grows like log n."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Party = TypeVar("Party")
Works = Callable[[list[list[Party]]], list[bool]]
"""Tries groups that share no party, each on its own, and says which of them works."""


def culprits(parties: Sequence[Party], works: Works[Party]) -> tuple[Party, ...] | None:
    """The one or two parties that do not work, of a group that does not work as a whole.

    It is taken that a group works exactly if all pairs in it do and each party does on its own.

    Args:
        parties: The group.
        works: Tries groups.

    Returns:
        One party, if it does not work on its own; else two that do not work together; None if every
        smaller group that was tried works.
    """
    for party, alone in zip(parties, works([[party] for party in parties]), strict=True):
        if not alone:
            return (party,)
    group = list(parties)
    while len(group) > 2:
        left, right = group[: len(group) // 2], group[len(group) // 2 :]
        left_works, right_works = works([left, right])
        if left_works and right_works:
            return _across(left, right, works)
        group = right if left_works else left
    return tuple(group) if len(group) == 2 else None


def _across(left: list[Party], right: list[Party], works: Works[Party]) -> tuple[Party, ...] | None:
    """Each side works on its own, both together do not: shrink one side, then the other."""
    one = _shrunk(left, lambda part: works([part + right])[0])
    other = _shrunk(right, lambda part: works([one + part])[0]) if one else None
    return (one[0], other[0]) if one and other else None


def _shrunk(side: list[Party], works: Callable[[list[Party]], bool]) -> list[Party] | None:
    """One party of a side with which the rest still does not work; None if all smaller parts work."""
    while len(side) > 1:
        first, second = side[: len(side) // 2], side[len(side) // 2 :]
        if not works(first):
            side = first
        elif not works(second):
            side = second
        else:
            return None
    return side
