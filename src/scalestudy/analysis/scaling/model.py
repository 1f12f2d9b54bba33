"""What is known of one series of runs: its scaling model, and the time of any number of workers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from scalestudy.analysis.measures import Groups, Measures, find_baseline
from scalestudy.analysis.scaling.fit import MINIMUM_COUNTS, ScalingFit, fit
from scalestudy.analysis.scaling.series import Series, series_of
from scalestudy.analysis.scaling.terms import ScalingTerm, terms_of
from scalestudy.analysis.statistics import NOTHING, Estimate, geometric_means, inverse, product, within

REACH = 4
"""How far predictions and limits go: times the largest count, or the largest speed-up measured."""
ANY_NUMBER = 10_000
"""An upper end of the limit of speed-up beyond this is none."""
ONE = Estimate(1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Prediction:
    """Time and speed-up on a number of workers, with 95 % intervals.

    Attributes:
        workers: The number.
        seconds: Training time: where it was measured the geometric mean of the runs, else the model's, with
            the prediction interval of one run.
        speedup: Against `Model.reference` workers; of work that grows with the workers the scaled one.
        efficiency: Its share of the ideal.
        kind: Whether the number of workers was measured, or lies between or outside of those that were.
    """

    workers: float
    seconds: Estimate
    speedup: Estimate
    efficiency: Estimate
    kind: Literal["measured", "interpolated", "extrapolated"]


@dataclass(frozen=True)
class NodeRow:
    """A number of full nodes: its workers, and its speed-up over one full node."""

    nodes: int
    workers: int
    speedup: Estimate

    @property
    def efficiency(self) -> Estimate:
        """S / k, of node-based scaling (arXiv:2510.12166): devices of unlike machines cannot be compared."""
        return self.speedup.scaled(1 / self.nodes)


@dataclass(frozen=True)
class Model:
    """A series with its scaling model.

    Attributes:
        series: Its runs.
        fit: The scaling model; None where there is too little, for which `reason` is given.
        reason: Why there is none.
        reference: Workers that its speed-up is against.
        reference_seconds: Training time there.
    """

    series: Series
    fit: ScalingFit | None
    reason: str
    reference: int
    reference_seconds: Estimate

    @property
    def lack_of_fit(self) -> bool:
        """Whether the runs show something that the scaling model misses."""
        return self.fit is not None and self.fit.lack_of_fit

    @property
    def nodes_measured(self) -> int | None:
        """Largest number of nodes measured; None where it is not known."""
        return self.series.nodes_measured

    @property
    def workers_per_node(self) -> int | None:
        """Most workers that were seen on one node; None where it is not known."""
        return self.series.workers_per_node

    def predict(self, workers: float) -> Prediction:
        """Time, speed-up and efficiency on a number of workers: measured where it was, else by the model.

        Raises:
            ValueError: The number was not measured, and there is no scaling model.
        """
        counts = self.series.different
        if workers in counts:
            return self._prediction(workers, self.series.means[int(workers)], "measured")
        if self.fit is None:
            raise ValueError(self.reason)
        kind: Literal["interpolated", "extrapolated"] = (
            "interpolated" if counts[0] < workers < counts[-1] else "extrapolated"
        )
        return self._prediction(workers, self.fit.run(workers), kind)

    def by_model(self, workers: float) -> Prediction:
        """The same by the scaling model alone, for the line of a figure."""
        assert self.fit is not None
        return self._prediction(workers, Estimate(self.fit.seconds(workers)), "interpolated")

    def _prediction(
        self, workers: float, seconds: Estimate, kind: Literal["measured", "interpolated", "extrapolated"]
    ) -> Prediction:
        speed = product(self._first if kind != "measured" else self.reference_seconds, inverse(seconds))
        if seconds is self.reference_seconds and seconds.low is not None:
            speed = ONE
        if self.series.work == "weak":
            speed = speed.scaled(workers / self.reference)
        return Prediction(workers, seconds, speed, speed.scaled(self.reference / workers), kind)

    @property
    def _first(self) -> Estimate:
        """Time of the reference; where that is one run, with what runs scatter about the model."""
        value = self.reference_seconds.value
        if self.reference_seconds.low is not None or self.fit is None or value is None:
            return self.reference_seconds
        return within(value, self.fit.spread.run) if self.fit.spread.freedom else self.reference_seconds

    @cached_property
    def limit(self) -> Estimate:
        """Speed-up that no number of workers exceeds by the model, with its interval; else empty.

        Nothing is said where the model misses something, where counts span less than a factor of `REACH` or
        the limit lies as far beyond the largest speed-up measured, and where the interval has no upper end.
        """
        counts = self.series.different
        if self.fit is None or self.fit.lack_of_fit or self.series.work == "weak":
            return NOTHING
        reached = max(self.predict(count).speedup.value or 0.0 for count in counts)
        found = product(self._first, inverse(self.fit.shortest()))
        if found.value is None or found.high is None or found.high > ANY_NUMBER:
            return NOTHING
        return found if counts[-1] >= REACH * counts[0] and found.value <= REACH * reached else NOTHING

    def counts(self, most: int | None = None) -> list[int]:
        """Measured counts, and beyond them doublings up to `most`, by default `REACH` times the largest."""
        found = list(self.series.different)
        most = most or REACH * found[-1]
        while found[-1] * 2 <= most:
            found.append(found[-1] * 2)
        return found

    @property
    def by_node(self) -> tuple[NodeRow, ...]:
        """One full node and several, where counts filled them; none where no more than one node was full."""
        nodes = self.series.nodes
        full = max((count for count, number in nodes.items() if number == 1), default=0)
        filled = [count for count, number in sorted(nodes.items()) if full and count == number * full]
        if len(filled) < 2:
            return ()
        rows = []
        for count in filled:
            speed = product(self.series.means[full], inverse(self.series.means[count]))
            speed = speed.scaled(count / full) if self.series.work == "weak" else speed
            rows.append(NodeRow(nodes[count], count, ONE if count == full else speed))
        return tuple(rows)


def models_of(measures: Measures) -> tuple[Model, ...]:
    """A scaling model of every strategy and variant, in reading order."""
    return tuple(model_of(series, measures.groups) for series in series_of(measures.groups))


def model_of(series: Series, groups: Groups) -> Model:
    """Model of one series; `groups` holds the one-worker runs that it may be held against."""
    found = fit(_terms(series), series.counts, series.seconds)
    reference, seconds = series.key.workers, series.means[series.key.workers]
    baseline = find_baseline(series.key, groups, timed=True)
    if baseline and baseline.strategy != series.key.strategy and series.work == "strong":
        runs = groups[baseline]
        taken = [run.result.training_seconds for run in runs if run.result.training_seconds]
        alike = {run.result.samples_processed for run in runs} == {series.samples}
        if series.of == "training" and alike and len(taken) == len(runs):
            reference, seconds = baseline.workers, geometric_means({1: taken})[1]
    return Model(series, found, "" if found else _why_none(series), reference, seconds)


def _terms(series: Series) -> tuple[ScalingTerm, ...]:
    """With one for the second node where two counts or more lie on either side of it."""
    one = [count for count, nodes in series.nodes.items() if nodes == 1]
    several = [count for count, nodes in series.nodes.items() if nodes > 1]
    told = min(len(one), len(several)) > 1 and max(one) < min(several)
    return terms_of(series.work, series.update, max(one) if told else None)


def _why_none(series: Series) -> str:
    found = len(series.different)
    if found < MINIMUM_COUNTS:
        left = f" ({_listed(series.others)} process other numbers of samples)" if series.others else ""
        return (
            f"a scaling model takes {MINIMUM_COUNTS} different numbers of workers, and there"
            f" {'is 1' if found == 1 else f'are {found}'}{left}"
        )
    return "a training time is not a positive number"


def _listed(counts: Sequence[int]) -> str:
    return ", ".join(str(count) for count in counts)


def karp_flatt(speedup: Estimate, workers: float) -> Estimate:
    """Serial share e = (1/S - 1/n) / (1 - 1/n), with the ends of the speed-up's interval.

    Karp and Flatt, "Measuring parallel processor performance", Communications of the ACM 33 (1990). Level as
    workers grow, time is lost to serial work; rising, to what grows with them.

    Args:
        speedup: S(n); a relative one is on n / n0 workers.
        workers: n, or n / n0; nothing is said at 1. Below 0 the speed-up is more than ideal.
    """
    if workers <= 1 or not speedup.value or speedup.value < 0 or math.isinf(speedup.value):
        return NOTHING

    def share(value: float | None) -> float | None:
        return (1 / value - 1 / workers) / (1 - 1 / workers) if value else None

    return Estimate(share(speedup.value), share(speedup.high), share(speedup.low))
