"""Strategies ranked on each side by how fast they work, with ties, and whether one is the best on both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scalestudy.analysis.runs import Key, describe
from scalestudy.analysis.statistics import Estimate

if TYPE_CHECKING:
    from scalestudy.features.compare.comparison import Side


@dataclass(frozen=True)
class SpeedRanking:
    """Strategies of one side at one count and variant, the fastest first.

    Attributes:
        workers: The count.
        variant: Other swept values, as in `Key`.
        tiers: Strategies that the runs tell apart from the next tier, best tier first; in a tier by value.
        certain: Whether every strategy has an interval, so that a tie is one.
        lead: The first strategy's rate over the second's; empty with one strategy.
    """

    workers: int
    variant: str
    tiers: tuple[tuple[str, ...], ...]
    certain: bool
    lead: Estimate

    @property
    def best(self) -> str | None:
        """The one fastest strategy, if the runs tell it apart from all others."""
        return self.tiers[0][0] if self.certain and len(self.tiers[0]) == 1 and len(self.tiers) > 1 else None

    @property
    def strategies(self) -> tuple[str, ...]:
        """All of them, the fastest first."""
        return tuple(name for tier in self.tiers for name in tier)


def rankings(side: "Side") -> dict[tuple[str, int], SpeedRanking]:
    """By variant and count, wherever two strategies or more were timed."""
    members: dict[tuple[str, int], list[Key]] = {}
    for key in side.findings.measures.groups:
        if side.timed(key) and side.findings.measures.rate.values[key]:
            members.setdefault((key.variant, key.workers), []).append(key)
    return {place: _ranking(side, keys) for place, keys in members.items() if len(keys) > 1}


def sentences(sides: Sequence["Side"]) -> list[str]:
    """Where the best strategy of the first side is or is not the best of another, for certain."""
    found = []
    first = rankings(sides[0])
    for other in sides[1:]:
        second = rankings(other)
        alike: dict[tuple[str, str, str], list[int]] = {}
        for variant, workers in sorted(first.keys() & second.keys()):
            here, there = first[variant, workers].best, second[variant, workers].best
            # Who has not tried the best of here cannot say that it is not the best there.
            if here and there and here in second[variant, workers].strategies:
                alike.setdefault((variant, here, there), []).append(workers)
        for (variant, _, _), counts in alike.items():
            places = first[variant, counts[-1]], second[variant, counts[-1]]
            found.append(_sentence(sides[0].name, places[0], other.name, places[1], counts))
    return found


def _sentence(name: str, ours: SpeedRanking, other: str, theirs: SpeedRanking, counts: Sequence[int]) -> str:
    """Of counts with the same outcome, the last of which both rankings are of."""
    swept = Key("", ours.workers, ours.variant).swept
    *before, last = map(str, counts)
    where = f"On {', '.join(before)} and {last} workers" if before else f"On {last} workers"
    where += f" ({describe(swept)})" if swept else ""
    if ours.best == theirs.best:
        return f"{where} {ours.best} is the fastest strategy of {name} and of {other}."
    on_the_last = f" on {last}" if before else ""
    return (
        f"{where} {ours.best} is the fastest strategy of {name} ({_times(ours)}{on_the_last}), and"
        f" {theirs.best} that of {other} ({_times(theirs)}{on_the_last}): the best strategy here is not the"
        " best there."
    )


def _times(found: SpeedRanking) -> str:
    return f"{found.lead.value:.2f} times as fast as {found.strategies[1]}"


def _ranking(side: "Side", keys: list[Key]) -> SpeedRanking:
    rate = side.findings.measures.rate
    order = sorted(keys, key=lambda key: -(rate.mean(key).value or 0.0))
    tiers: list[list[Key]] = [[order[0]]]
    certain = True
    for key in order[1:]:
        ahead = rate.ratio(tiers[-1][0], key)
        certain = certain and ahead.low is not None
        if ahead.low is not None and ahead.low > 1:
            tiers.append([key])
        else:
            tiers[-1].append(key)
    return SpeedRanking(
        order[0].workers,
        order[0].variant,
        tuple(tuple(key.strategy for key in tier) for tier in tiers),
        certain,
        rate.ratio(order[0], order[1]),
    )
