"""Choosing what is drawn of much, and where labels stand that would lie on each other."""

from collections.abc import Collection, Sequence
from math import log


def thinned(values: Sequence[int], most: int, keep: Collection[int] = ()) -> list[int]:
    """At most so many of these positive numbers, sorted: the ends, `keep`, and others evenly by ratio.

    Args:
        values: What there is.
        most: How many are wanted, 2 at least; exceeded where `keep` alone is more.
        keep: Those that are kept in any case.
    """
    every = sorted(set(values))
    if len(every) <= most:
        return every
    chosen = {every[0], every[-1], *(value for value in every if value in keep)}
    while len(chosen) < most:
        # The one that is furthest from all that are chosen already.
        chosen.add(max(every, key=lambda value: min(abs(log(value / other)) for other in chosen)))
    return sorted(chosen)


def apart(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places in their order, moved as little as needed to lie `gap` apart, and within the ends if they fit.

    Neighbours that would touch form a block about its own middle, and blocks that would touch join.
    """
    order = sorted(range(len(places)), key=lambda index: places[index])
    blocks: list[tuple[list[int], float]] = []
    for index in order:
        blocks.append(([index], min(max(places[index], low), high)))
        while len(blocks) > 1 and _touch(blocks[-2], blocks[-1], gap):
            (first, _), (second, _) = blocks[-2:]
            members = first + second
            middle = sum(places[each] for each in members) / len(members)
            half = gap * (len(members) - 1) / 2
            blocks[-2:] = [(members, max(low + half, min(middle, high - half)))]
    found = [0.0] * len(places)
    for members, middle in blocks:
        for number, index in enumerate(members):
            found[index] = middle + gap * (number - (len(members) - 1) / 2)
    return found


def _touch(below: tuple[list[int], float], above: tuple[list[int], float], gap: float) -> bool:
    return above[1] - below[1] < gap * (len(below[0]) + len(above[0])) / 2 - 1e-9
