"""A series of runs with its scaling model, and predicted times for other numbers of workers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from scalestudy.analysis.measures import Groups, Measures, find_baseline
from scalestudy.analysis.runs import Key
from scalestudy.analysis.scaling.fit import MINIMUM_COUNTS, ScalingFit, ScalingTerm, fit, terms_of
from scalestudy.analysis.scaling.series import Series, nearly_equal, series_of
from scalestudy.analysis.statistics import NOTHING, ONE, Estimate

REACH = 4
"""How far predictions and limits reach, as a factor of the largest number of workers or speed-up measured."""
ANY_NUMBER = 10_000
"""If the upper end of the limit of speed-up exceeds this, there is no limit."""


@dataclass(frozen=True)
class Prediction:
    """Time and speed-up on a number of workers, with 95 % intervals.

    Attributes:
        seconds: Geometric mean of the runs if it was measured; else the model's time with the prediction
            interval of one run.
        speedup: Relative to `Model.reference` workers; for weak scaling the scaled speed-up.
        efficiency: Share of the ideal speed-up.
        kind: Whether the number of workers was measured, or lies between or outside the measured ones.
    """

    workers: float
    seconds: Estimate
    speedup: Estimate
    efficiency: Estimate
    kind: Literal["measured", "interpolated", "extrapolated"]


@dataclass(frozen=True)
class Model:
    """A series with its scaling model.

    Attributes:
        fit: The scaling model; None if it cannot be fitted, for the reason in `reason`.
        baseline: The row that its speed-up is relative to.
    """

    series: Series
    fit: ScalingFit | None
    reason: str
    baseline: Key

    @property
    def reference(self) -> int:
        """Workers of the baseline."""
        return self.baseline.workers

    @property
    def lack_of_fit(self) -> bool:
        """Whether the runs deviate from the scaling model by more than their scatter."""
        return self.fit is not None and self.fit.lack_of_fit

    @property
    def nodes_measured(self) -> int | None:
        """Largest number of nodes measured; None if unknown."""
        return self.series.nodes_measured

    @property
    def workers_per_node(self) -> int | None:
        """Largest number of workers on one node; None if unknown."""
        return self.series.workers_per_node

    def predict(self, workers: float) -> Prediction:
        """Time, speed-up and efficiency on a number of workers: measured if available, else from the model.

        Raises:
            ValueError: The number was not measured, and there is no scaling model.
        """
        counts = self.series.different
        if workers in counts:
            row, times = self.series.key.on(int(workers)), self.series.times
            itself = ONE if len(times.values[row]) > 1 else Estimate(1.0)
            speed = itself if row == self.baseline else times.ratio(self.baseline, row)
            return self._prediction(workers, times.mean(row), speed, "measured")
        if self.fit is None:
            raise ValueError(self.reason)
        inside = counts[0] < workers < counts[-1]
        seconds = self.fit.run(workers)
        speed = self._first.times(seconds.inverse())
        return self._prediction(workers, seconds, speed, "interpolated" if inside else "extrapolated")

    def _prediction(
        self,
        workers: float,
        seconds: Estimate,
        speed: Estimate,
        kind: Literal["measured", "interpolated", "extrapolated"],
    ) -> Prediction:
        if self.series.work == "weak":
            speed = speed.scaled(workers / self.reference)
        return Prediction(workers, seconds, speed, speed.scaled(self.reference / workers), kind)

    @property
    def _first(self) -> Estimate:
        """Time of the baseline; if that is one run, with the scatter of runs about the model."""
        seconds = self.series.times.mean(self.baseline)
        return seconds.times(self.fit.one_run) if seconds.low is None and self.fit else seconds

    @cached_property
    def limit(self) -> Estimate:
        """Speed-up that the model does not exceed on any number of workers, with its interval; else empty.

        It is empty for weak scaling or lack of fit, if workers span less than a factor of `REACH`, if
        the limit exceeds `REACH` times the largest speed-up measured, and if the interval has no upper end.
        """
        counts = self.series.different
        if self.fit is None or self.fit.lack_of_fit or self.series.work == "weak":
            return NOTHING
        reached = max(self.predict(count).speedup.value or 0.0 for count in counts)
        limit = self._first.times(self.fit.shortest().inverse())
        if limit.value is None or limit.high is None or limit.high > ANY_NUMBER:
            return NOTHING
        return limit if counts[-1] >= REACH * counts[0] and limit.value <= REACH * reached else NOTHING

    def counts(self, most: int | None = None) -> list[int]:
        """Measured numbers of workers, then doublings up to `most`, by default `REACH` times the largest."""
        counts = list(self.series.different)
        most = most or REACH * counts[-1]
        while counts[-1] * 2 <= most:
            counts.append(counts[-1] * 2)
        return counts


def models_of(measures: Measures) -> tuple[Model, ...]:
    """Model of every strategy and variant, in reading order."""
    return tuple(model_of(series, measures.groups) for series in series_of(measures))


def model_of(series: Series, groups: Groups) -> Model:
    """Model of one series; `groups` holds the one-worker runs that may be its baseline."""
    timed = series.timed
    scaling = fit(_terms(series), [count for count, _ in timed], [seconds for _, seconds in timed])
    reference, baseline = series.key, find_baseline(series.key, groups, timed=True)
    if baseline and baseline.strategy != series.key.strategy and series.work == "strong":
        samples = [series.samples, *(run.result.samples_processed for run in groups[baseline])]
        same_work = nearly_equal(size for size in samples if size) if all(samples) else not any(samples)
        if series.of == "training" and same_work and series.times.values[baseline]:
            reference = baseline
    return Model(series, scaling, "" if scaling else _why_none(series), reference)


def _terms(series: Series) -> tuple[ScalingTerm, ...]:
    """Terms of a series, with one for the second node if two or more numbers of workers lie on each side."""
    one = [count for count, nodes in series.nodes.items() if nodes == 1]
    several = [count for count, nodes in series.nodes.items() if nodes > 1]
    told_apart = min(len(one), len(several)) > 1 and max(one) < min(several)
    return terms_of(series.work, series.update, max(one) if told_apart else None)


def _why_none(series: Series) -> str:
    counts = len(series.different)
    if counts >= MINIMUM_COUNTS:
        return "a training time is not a positive number"
    others = f" ({_listed(series.others)} processed a different number of samples)" if series.others else ""
    return (
        f"a scaling model needs {MINIMUM_COUNTS} different numbers of workers, and there"
        f" {'is 1' if counts == 1 else f'are {counts}'}{others}"
    )


def _listed(counts: Sequence[int]) -> str:
    return ", ".join(str(count) for count in counts)


def karp_flatt(speedup: Estimate, workers: float) -> Estimate:
    """Serial share e = (1/S - 1/n) / (1 - 1/n), with the interval from that of the speed-up.

    Karp and Flatt, "Measuring parallel processor performance", Communications of the ACM 33 (1990). If it
    stays constant as workers are added, time is lost to serial work; if it rises, to overhead that grows with
    them.

    Args:
        speedup: S(n); a relative speed-up is on n / n0 workers.
        workers: n, or n / n0. At 1 the result is empty. Below 0, the speed-up is more than ideal.
    """
    if workers <= 1 or not speedup.value or speedup.value < 0 or math.isinf(speedup.value):
        return NOTHING
    return speedup.inverse().map(lambda value: (value - 1 / workers) / (1 - 1 / workers))
