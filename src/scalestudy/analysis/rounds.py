"""Which runs were taken in one round: rows that were run together can be compared within their rounds.

A round holds a run of every row, under one seed, in random order (`config.expand`). Hours in which the
machine is slower cancel in the comparison of two rows then. They do not if a grid was interrupted and
continued, if rows were added later, or if a queue ran one row after the other: each row has hours of its own,
which its seeds share, so that no spread of its runs shows them. Such rows are compared unpaired, with a
component of variance between rows. It is estimated from how far rows lie off a smooth curve of their number
of workers, moderated with an assumed value (`analysis.variances`). Tables from elsewhere do not tell when
their rows were run, so they are treated like this.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

from scalestudy.analysis.runs import Key, Run, seed_of
from scalestudy.analysis.scales import LOGARITHM
from scalestudy.analysis.variances import Values, Variance

# Of simulated studies whose rows were run in hours that differ by 3, 5 and 10 %, 98 %, 93 to 96 % and 86 to 89 %
# of the intervals hold the truth with these two (tests/analysis/test_coverage.py).
HOURS = 0.03
"""Assumed standard deviation between the hours of rows, as a share of the time."""
ASSUMED = 2.0
"""Degrees of freedom of the assumed value."""
BETWEEN = Variance(HOURS**2, ASSUMED)
CURVE = 3
"""Parameters of the smooth curve: a parabola of log time over log workers."""


Block = tuple[Key, Any]
"""A row and one of its blocks."""
Names = dict[Block, Any]
"""Round of each row's block, where it is not the block itself."""
Series = dict[tuple[str, str], list[Key]]
"""Rows that differ only in the number of workers."""


@dataclass(frozen=True)
class Span:
    """When the runs of a row began: Unix times of the first and the last."""

    first: float
    last: float


class _Start(NamedTuple):
    """When a run of a row began, as a Unix time."""

    began: float
    run: Run
    key: Key


@dataclass(frozen=True)
class Rounds:
    """When the rows of a study were run; by default, all runs of a block were taken in one round.

    Attributes:
        names: Round of each row's block, where it is not the block itself.
        spans: When each row was run; None if it is not known of rows from elsewhere.
        between: Variance of logarithms of times between rows that were not run together.
    """

    names: Mapping[Block, Any] = field(default_factory=dict)
    spans: Mapping[Key, Span | None] = field(default_factory=dict)
    between: Variance = BETWEEN

    def named(self, key: Key, values: Values) -> dict[Any, float]:
        """A row's values by round instead of block."""
        by_round = {}
        for block, value in values.items():
            name = self.names.get((key, block), block)
            by_round[name] = value
        return by_round

    def apart(self, key: Key, other: Key) -> bool:
        """Whether two rows were run one after the other, or may have been."""
        if key not in self.spans or other not in self.spans:
            return False
        ours = self.spans[key]
        theirs = self.spans[other]
        # Tables from elsewhere: less than half of the intervals held when their rows counted as one round.
        if ours is None or theirs is None:
            return True
        before = ours.last < theirs.first
        after = theirs.last < ours.first
        return before or after

    def alone(self, values: Mapping[Key, Values]) -> list[Key]:
        """Rows that were run before or after all others of their series, sharing no round with them."""
        found = []
        series: Series = {}
        for key, span in self.spans.items():
            if span and values.get(key):
                series.setdefault(key.series, []).append(key)
        for keys in series.values():
            rounds: dict[Key, set[Any]] = {}
            for key in keys:
                by_round = self.named(key, values[key])
                rounds[key] = set(by_round)
            for key in keys:
                others = [other for other in keys if other != key]
                if others and self._is_alone(key, others, rounds):
                    found.append(key)
        return found

    def _is_alone(
        self,
        key: Key,
        others: Sequence[Key],
        rounds: Mapping[Key, set[Any]],
    ) -> bool:
        """Whether a row has no round in common with these, and was run before or after each of them."""
        own = rounds[key]
        for other in others:
            if not own.isdisjoint(rounds[other]):
                return False
            if not self.apart(key, other):
                return False
        return True


def rounds_of(
    groups: Mapping[Key, Sequence[Run]],
    values: Mapping[Key, Values],
) -> Rounds:
    """Find the rounds of runs, and estimate the variance between rows that were run apart.

    Runs of one seed belong to one round, except where another seed's run began after one of them had ended
    and before the next of them began. Our own runs without a recorded time count as taken in rounds.

    Args:
        groups: Runs by row.
        values: Times or rates of each row by block.
    """
    names: Names = {}
    spans: dict[Key, Span | None] = {}
    timed: list[_Start] = []
    for key, runs in groups.items():
        starts = []
        for run in runs:
            if run.result.began is not None:
                starts.append(run.result.began)
        if len(starts) == len(runs):
            spans[key] = Span(min(starts), max(starts))
            for start, run in zip(starts, runs, strict=True):
                timed.append(_Start(start, run, key))
        elif any(run.foreign for run in runs):
            # A table does not tell when its rows were run: each block is a round of its own.
            spans[key] = None
            for block in values.get(key, ()):
                names[key, block] = (key, block)
    timed.sort(key=lambda start: start.began)
    names |= _split(timed)
    # Which rows were run apart decides whose deviations from a curve tell about hours.
    rounds = Rounds(names, spans)
    return Rounds(names, spans, _between(rounds, values))


def _split(timed: Sequence[_Start]) -> Names:
    """Names of rounds for runs in the order of their start: its block, and the number of its part."""
    parts: dict[Any, int] = {}
    latest: dict[Any, tuple[int, float]] = {}
    names: Names = {}
    for place, start in enumerate(timed):
        block = seed_of(start.run)
        # Without its duration, a run counts as ended when it began.
        duration = start.run.result.wall_seconds or 0.0
        ended = start.began + duration
        if block in latest:
            before, last_ended = latest[block]
            between = timed[before + 1 : place]
            # Another seed in between: the grid was interrupted and continued, or rows were added later.
            if _another_began(between, block, last_ended):
                parts[block] = parts.get(block, 0) + 1
            # Runs of a queue overlap.
            ended = max(ended, last_ended)
        latest[block] = place, ended
        part = parts.get(block)
        if part:
            names[start.key, block] = (block, part)
    return names


def _another_began(
    starts: Sequence[_Start],
    block: Any,
    after: float,
) -> bool:
    """Whether a run of another block began after this time."""
    for start in starts:
        if start.began > after and seed_of(start.run) != block:
            return True
    return False


def _some_apart(rounds: Rounds, keys: Sequence[Key]) -> bool:
    """Whether two of these rows were run one after the other, or one of them at an unknown time."""
    for key in keys:
        # Also with itself: a row without a time may have been run apart from any.
        for other in keys:
            if rounds.apart(key, other):
                return True
    return False


def _between(rounds: Rounds, values: Mapping[Key, Values]) -> Variance:
    """Variance between rows: the assumed one, moderated by the lack of fit of a smooth curve."""
    squares, freedom = 0.0, 0
    for keys in _positive_series(rounds, values).values():
        # Rows of one round share its hour, and tell nothing about how hours differ.
        if not _some_apart(rounds, keys):
            continue
        counts = {key.workers for key in keys}
        # Through as many counts as it has parameters, the curve passes exactly.
        left = len(counts) - CURVE
        if left > 0:
            squares += _squares_about_curve(keys, values)
            freedom += left
    total = ASSUMED + freedom
    # Moderated like the variances of runs: weighted by degrees of freedom (Smyth 2004).
    value = (ASSUMED * HOURS**2 + squares) / total
    return Variance(value, total)


def _positive_series(rounds: Rounds, values: Mapping[Key, Values]) -> Series:
    """Rows whose values have a logarithm, by series."""
    series: Series = {}
    for key in rounds.spans:
        row = values.get(key)
        if row and all(map(LOGARITHM.holds, row.values())):
            series.setdefault(key.series, []).append(key)
    return series


def _squares_about_curve(
    keys: Sequence[Key],
    values: Mapping[Key, Values],
) -> float:
    """Sum of squares of the rows' log times about a parabola over log workers."""
    import numpy as np

    counts = np.log2([key.workers for key in keys])
    means = []
    for key in keys:
        logarithms = map(math.log, values[key].values())
        means.append(fmean(logarithms))
    measured = np.array(means)
    design = np.vander(counts, CURVE)
    coefficients, *_ = np.linalg.lstsq(design, measured, rcond=None)
    predicted = design @ coefficients
    residuals = measured - predicted
    squares = residuals @ residuals
    return float(squares)
