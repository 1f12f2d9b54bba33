"""An estimate held against what was measured later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean

from scalestudy.analysis.runs import Key, key_of
from scalestudy.analysis.table import Row
from scalestudy.features.estimate.records import EstimateRecord, ForeseenPoint, ForeseenSeries


@dataclass(frozen=True)
class Held:
    """A measured row beside what was foreseen of it.

    Attributes:
        key: The row.
        foreseen: What was expected.
        seconds: Measured training time.
        speedup: Measured, from training times; where the study has no one-worker run, over the time that the
            estimate gives one worker. None where there is none.
    """

    key: Key
    foreseen: ForeseenPoint
    seconds: float
    speedup: float | None

    @property
    def off(self) -> float:
        """By which share the measured training time is longer than foreseen."""
        return self.seconds / self.foreseen.training_seconds.value - 1

    @property
    def inside(self) -> bool:
        """Whether the measured training time lies in the foreseen interval."""
        return self.foreseen.training_seconds.holds(self.seconds)


def held_against(estimate: EstimateRecord, rows: Sequence[Row]) -> list[Held]:
    """Rows of several workers that were foreseen, in their order; none that shared cores."""
    foreseen = {
        key_of(series.strategy, point.workers, series.swept): point
        for series in estimate.series
        for point in series.points
    }
    return [
        Held(row.key, foreseen[row.key], row.training_seconds.value, _speedup(row, foreseen))
        for row in rows
        if row.workers > 1
        and row.key in foreseen
        and row.training_seconds.value is not None
        and not row.oversubscribed
    ]


def _speedup(row: Row, foreseen: Mapping[Key, ForeseenPoint]) -> float | None:
    """Over one worker, as what was foreseen; the study's own may be over more, or over none."""
    if row.speed.baseline is not None and row.speed.against == 1:
        return row.speed.training.value
    one = foreseen.get(row.key.with_(row.strategy, 1))
    seconds = row.training_seconds.value
    return one.training_seconds.value / seconds if one and seconds else None


def mean_factor(held: Sequence[Held]) -> float:
    """Geometric mean of the factors by which measured times differ from foreseen ones, either way.

    Args:
        held: At least one.
    """
    return exp(fmean(abs(log(each.seconds / each.foreseen.training_seconds.value)) for each in held))


def series_of(estimate: EstimateRecord, key: Key) -> ForeseenSeries | None:
    """What was foreseen of a strategy."""
    found = key_of(key.strategy, 1, key.swept)
    return next((each for each in estimate.series if key_of(each.strategy, 1, each.swept) == found), None)
