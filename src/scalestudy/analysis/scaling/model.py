"""What is known of one series: its law, its predictions, and what the second node does."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.analysis.measures import Measures
from scalestudy.analysis.scaling.amdahl import MINIMUM_COUNTS
from scalestudy.analysis.scaling.by_node import NodeRow, by_node
from scalestudy.analysis.scaling.choose import Choice, choose
from scalestudy.analysis.scaling.fit import Fit
from scalestudy.analysis.scaling.second_node import SecondNode, second_node
from scalestudy.analysis.scaling.series import Series, series_of
from scalestudy.analysis.speedup import find_baseline
from scalestudy.analysis.statistics import Estimate

REACH = 4
"""How far predictions go by default: times the largest count."""
FURTHEST = 1e6
"""Workers beyond which nobody asks."""


@dataclass(frozen=True)
class Prediction:
    """What the law gives at one count, with 95 % prediction intervals of a run. Seconds.

    Attributes:
        workers: The count.
        seconds: Training time.
        speedup: Against `Model.reference` workers; of work that grows with the workers the scaled one.
        efficiency: Its share of the ideal.
        beyond: Whether the count lies outside of what was measured.
    """

    workers: float
    seconds: Estimate
    speedup: Estimate
    efficiency: Estimate
    beyond: bool


@dataclass(frozen=True)
class Model:
    """A series with its law.

    Attributes:
        series: Its runs.
        choice: The law chosen and those tried; None where there is too little, for which `reason` is given.
        reason: Why there is no law.
        second_node: Of a break there; None where nothing ran on several nodes.
        nodes: Speed-up by full nodes; empty likewise.
        reference: Workers that its speed-up is against.
        reference_seconds: Training time there, where another strategy's row is the baseline.
    """

    series: Series
    choice: Choice | None
    reason: str = ""
    second_node: SecondNode | None = None
    nodes: tuple[NodeRow, ...] = ()
    reference: int = 1
    reference_seconds: float | None = None

    @property
    def fit(self) -> Fit | None:
        """The law, with its break where one was accepted."""
        broken = self.second_node.fit if self.second_node else None
        return broken or (self.choice.fit if self.choice else None)

    def predict(self, workers: float) -> Prediction:
        """What the law gives at a count.

        Raises:
            ValueError: There is no law.
        """
        fit = self.fit
        if fit is None:
            raise ValueError(self.reason)
        seconds = fit.time(workers)
        if self.reference_seconds is None:
            speed = fit.ratio(workers, self.reference)
        else:
            speed = _inverse(seconds, self.reference_seconds)
        if self.series.work == "weak":
            speed = speed.scaled(workers / self.reference)
        return Prediction(
            workers, seconds, speed, speed.scaled(self.reference / workers), fit.beyond(workers)
        )

    def measured(self, workers: int, training_seconds: Estimate) -> Estimate:
        """Mean time at a count, of what the series' times are of; `training_seconds` is its row's."""
        if self.series.of == "training" or self.fit is None:
            return training_seconds
        return Estimate(self.fit.seconds(workers) * (1 + self.fit.residuals[workers]))

    @property
    def limit(self) -> float | None:
        """Speed-up against `reference` that no count exceeds by the law; None where there is none such."""
        fit = self.fit
        if fit is None:
            return None
        first = self.reference_seconds or fit.seconds(self.reference)
        last = fit.seconds(math.inf)
        return first / last if first * 1e-9 < last < math.inf else None

    def falls_to(self, efficiency: float) -> float | None:
        """Workers at which efficiency by the law has fallen to a value; None if not before `FURTHEST`."""
        import numpy as np

        fit = self.fit
        if fit is None:
            return None
        grid = np.geomspace(fit.smallest, FURTHEST, 4000)
        seconds = fit.law.seconds(grid, fit.coefficients)
        first = self.reference_seconds or fit.seconds(self.reference)
        found = first / seconds * (1.0 if self.series.work == "weak" else self.reference / grid)
        above = np.flatnonzero(found >= efficiency)
        if not len(above) or above[-1] == len(grid) - 1:
            return None
        return float(grid[above[-1]])

    def counts(self, most: int | None = None) -> list[int]:
        """Measured counts, and beyond them doublings up to `most`, by default `REACH` times the largest."""
        found = list(self.series.different)
        most = most or REACH * found[-1]
        while found[-1] * 2 <= most:
            found.append(found[-1] * 2)
        return found


def models_of(measures: Measures) -> tuple[Model, ...]:
    """A model of every strategy and variant, in reading order."""
    return tuple(_model(series, measures) for series in series_of(measures.groups))


def _model(series: Series, measures: Measures) -> Model:
    choice = choose(series.counts, series.seconds, series.work)
    reference, seconds = series.key.workers, None
    baseline = find_baseline(series.key, measures.groups)
    if baseline is not None and baseline.strategy != series.key.strategy and _comparable(series):
        samples = {run.result.samples_processed for run in measures.groups[baseline]}
        time = measures.training_seconds.mean(baseline).value
        if samples == {series.samples} and time:
            reference, seconds = baseline.workers, time
    return Model(
        series=series,
        choice=choice,
        reason="" if choice else _why_none(series),
        second_node=second_node(series, choice),
        nodes=by_node(series, measures),
        reference=reference,
        reference_seconds=seconds,
    )


def _comparable(series: Series) -> bool:
    return series.work == "strong" and series.of == "training"


def _why_none(series: Series) -> str:
    found = len(series.different)
    if found < MINIMUM_COUNTS:
        left = f" ({_listed(series.others)} process other numbers of samples)" if series.others else ""
        return (
            f"a law takes {MINIMUM_COUNTS} different numbers of workers, and there"
            f" {'is 1' if found == 1 else f'are {found}'}{left}"
        )
    return "a training time is not a positive number"


def _listed(counts: Sequence[int]) -> str:
    return ", ".join(str(count) for count in counts)


def _inverse(seconds: Estimate, reference: float) -> Estimate:
    assert seconds.value is not None
    if seconds.low is None or seconds.high is None:
        return Estimate(reference / seconds.value)
    return Estimate(reference / seconds.value, reference / seconds.high, reference / seconds.low)
