"""Series of runs over numbers of workers with their scaling models and predictions.

A series has equal work on any number of workers (strong scaling). Numbers from other tools may lack the
training time. Then the mean time of an epoch or the time of 1,000 samples is used. Unknown work is assumed to
be equal.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from statistics import fmean
from typing import Literal

from scalestudy.analysis.estimate import NOTHING, ONE, Estimate
from scalestudy.analysis.measures import (
    Measure,
    Measures,
    find_baseline,
    gather_keys,
    measure_times,
    times_count,
)
from scalestudy.analysis.runs import Key, Run, RunsByRow, values_of
from scalestudy.analysis.scaling_fit import (
    MINIMUM_COUNTS,
    ScalingFit,
    ScalingTerm,
    Update,
    fit,
    terms_of,
)
from scalestudy.util.text import plural

TimeOf = Literal["training", "epoch", "samples"]
ALIKE = 0.01
"""Relative difference up to which amounts of work count as equal."""
SAMPLES = 1000
"""Samples whose time is fitted if neither the time of a training nor of an epoch is known."""
TIMES: dict[TimeOf, str] = {
    "training": "Training time",
    "epoch": "Time of an epoch",
    "samples": f"Time of {SAMPLES:,} samples",
}
"""Names of the times of a series."""
REACH = 4
"""How far predictions and limits reach, as a factor of the largest number of workers or speed-up measured."""
ANY_NUMBER = 10_000
"""If the upper end of the limit of speed-up exceeds this, there is no limit."""


@dataclass(frozen=True)
class Series:
    """Timed runs of one strategy and variant, and what is known about their work.

    Attributes:
        key: Its row with the fewest workers.
        different: Different numbers of workers, in order.
        times: Seconds of the unit in `of`, with all rows that share its design.
        samples: Samples that one training on the fewest workers processes; None if unknown.
        update: "fixed" if the global batch is constant, "growing" if it grows with the workers; None if
            neither or unknown.
        nodes: Nodes for each number of workers, without those whose ranks were not all recorded.
        others: Numbers of workers that process other numbers of samples and are left out.
        of: Which time is fitted.
    """

    key: Key
    different: tuple[int, ...]
    times: Measure
    samples: int | None
    update: Update | None
    nodes: Mapping[int, int]
    others: tuple[int, ...] = ()
    of: TimeOf = "training"

    @property
    def timed(self) -> list[tuple[int, float]]:
        """Workers and seconds of each run."""
        pairs = []
        for count in self.different:
            for seconds in self.times.values[self.key.on(count)].values():
                pairs.append((count, seconds))
        return pairs


def nodes_of(run: Run) -> int | None:
    """Number of nodes that a run computed on; None unless all of its ranks were recorded."""
    if not run.ranks or len(run.ranks) != run.ranks[0].size:
        return None
    return len(run.rank_hosts)


def series_of(measures: Measures) -> list[Series]:
    """Every strategy and variant with usable times, in reading order."""
    groups = measures.groups
    usable = [key for key in groups if times_count(groups[key])]
    found = []
    for keys in gather_keys(usable, lambda key: key.series).values():
        series = _series(keys, measures)
        if series is not None:
            found.append(series)
    return found


def _series(keys: Sequence[Key], measures: Measures) -> Series | None:
    rows: dict[int, Sequence[Run]] = {}
    runs: list[Run] = []
    for key in keys:
        rows[key.workers] = measures.groups[key]
        runs += measures.groups[key]
    of = _first_known_time(runs)
    if of is None:
        return None
    works = _works(rows, of)
    first = min(works, default=0)
    if not first:
        return None
    compared = {}
    for count, work in works.items():
        if nearly_equal((work, works[first])):
            compared[count] = rows[count]
    batches = {}
    for count, members in compared.items():
        batches[count] = members[0].result.global_batch
    return Series(
        key=keys[0].on(first),
        different=tuple(sorted(compared)),
        times=_times_of(keys, measures, of),
        samples=compared[first][0].result.samples_processed,
        update=_update(batches),
        nodes=_node_counts(compared),
        others=tuple(sorted(rows.keys() - compared.keys())),
        of=of,
    )


def _first_known_time(runs: Sequence[Run]) -> TimeOf | None:
    """The first time that is known for all runs."""
    for of in TIMES:
        if None not in [_seconds_of(run, of) for run in runs]:
            return of
    return None


def _seconds_of(run: Run, of: TimeOf) -> float | None:
    if of == "training":
        return run.result.training_seconds
    if of == "epoch":
        return run.epoch_seconds
    # Numbers from other tools may hold no other time.
    if run.foreign and run.result.throughput:
        return SAMPLES / run.result.throughput
    return None


def _times_of(keys: Sequence[Key], measures: Measures, of: TimeOf) -> Measure:
    if of == "training":
        return measures.training_seconds
    own, values = {}, {}
    for key in keys:
        own[key] = measures.groups[key]
        values[key] = values_of(own[key], lambda run: _seconds_of(run, of))
    return measure_times(own, values)


def _node_counts(rows: Mapping[int, Sequence[Run]]) -> dict[int, int]:
    """Nodes for each number of workers whose runs all recorded the same number."""
    counts = {}
    for count, runs in rows.items():
        numbers = {nodes_of(run) for run in runs}
        number = numbers.pop()
        # Runs of one count that a queue spread over other nodes tell nothing about a node's edge.
        if not numbers and number is not None:
            counts[count] = number
    return counts


def _works(rows: Mapping[int, Sequence[Run]], of: TimeOf) -> dict[int, float]:
    """Work in samples or epochs by number of workers, without those whose runs differ by more than `ALIKE`.

    If only the size of the training set is known, every epoch is assumed to process all of it.
    """
    if of == "samples":
        return dict.fromkeys(rows, 1.0)
    every = chain.from_iterable(rows.values())
    sized = all(run.result.training_samples for run in every)

    def work(run: Run) -> float:
        size = 1
        if sized:
            size = run.result.training_samples or 1
        if of == "epoch":
            return size
        # Without epochs, all runs are taken to have trained for as many.
        expected = size * (run.result.epochs or 1)
        return run.result.samples_processed or expected

    works = {}
    for count, runs in rows.items():
        # Repeats of a run with the same work count once.
        amounts = {work(run) for run in runs}
        if nearly_equal(amounts):
            works[count] = fmean(amounts)
    return works


def _update(batches: Mapping[int, int | None]) -> Update | None:
    whole, per_worker = [], []
    for count, batch in batches.items():
        if not batch:
            return None
        whole.append(batch)
        per_worker.append(batch / count)
    if nearly_equal(whole):
        return "fixed"
    if nearly_equal(per_worker):
        return "growing"
    return None


def nearly_equal(values: Iterable[float]) -> bool:
    """Whether amounts of work count as equal."""
    numbers = list(values)
    return max(numbers) <= min(numbers) * (1 + ALIKE)


@dataclass(frozen=True)
class Prediction:
    """Time and speed-up on a number of workers, with 95 % intervals.

    Attributes:
        seconds: Geometric mean of the runs if it was measured; else the model's time with the prediction
            interval of one run.
        speedup: Relative to `Model.reference` workers.
        efficiency: Share of the ideal speed-up.
        measured: Whether the number of workers was measured; else the model predicts it.
    """

    workers: float
    seconds: Estimate
    speedup: Estimate
    efficiency: Estimate
    measured: bool


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

    def predict(self, workers: float) -> Prediction:
        """Time, speed-up and efficiency on a number of workers: measured if available, else from the model.

        Raises:
            ValueError: The number was not measured, and there is no scaling model.
        """
        measured = workers in self.series.different
        if measured:
            row = self.series.key.on(int(workers))
            times = self.series.times
            seconds = times.mean(row)
            speedup = times.ratio(self.baseline, row)
            if row == self.baseline and len(times.values[row]) > 1:
                speedup = ONE
            elif row == self.baseline:
                speedup = Estimate(1.0)
        elif self.fit is not None:
            seconds = self.fit.run(workers)
            speedup = self._first.times(seconds.inverse())
        else:
            raise ValueError(self.reason)
        efficiency = speedup.scaled(self.reference / workers)
        return Prediction(workers, seconds, speedup, efficiency, measured)

    @property
    def _first(self) -> Estimate:
        """Time of the baseline; if that is one run, with the scatter of runs about the model."""
        seconds = self.series.times.mean(self.baseline)
        if seconds.low is None and self.fit:
            return seconds.times(self.fit.one_run)
        return seconds

    @cached_property
    def limit(self) -> Estimate:
        """Speed-up that the model does not exceed on any number of workers, with its interval; else empty.

        It is empty for lack of fit, if workers span less than a factor of `REACH`, if the limit exceeds
        `REACH` times the largest speed-up measured, and if the interval has no upper end.
        """
        counts = self.series.different
        if self.fit is None or self.fit.lack_of_fit:
            return NOTHING
        reached = [self.predict(count).speedup.value or 0.0 for count in counts]
        limit = self._first.times(self.fit.shortest().inverse())
        if limit.value is None or limit.high is None or limit.high > ANY_NUMBER:
            return NOTHING
        if counts[-1] < REACH * counts[0]:
            return NOTHING
        if limit.value > REACH * max(reached):
            return NOTHING
        return limit

    def counts(self) -> list[int]:
        """Measured numbers of workers, then doublings up to `REACH` times the largest."""
        counts = list(self.series.different)
        while counts[-1] * 2 <= REACH * self.series.different[-1]:
            counts.append(counts[-1] * 2)
        return counts


def model_of(series: Series, groups: RunsByRow) -> Model:
    """Model of one series; `groups` holds the one-worker runs that may be its baseline."""
    counts, times = [], []
    for count, seconds in series.timed:
        counts.append(count)
        times.append(seconds)
    scaling = fit(_terms(series), counts, times)
    reason = ""
    if scaling is None:
        reason = _why_none(series)
    reference = series.key
    baseline = find_baseline(series.key, groups, timed=True)
    # Plain training stands for one worker of a strategy that was not run on one, if it did the same work.
    if baseline and baseline.strategy != series.key.strategy:
        known = series.of == "training" and series.times.values[baseline]
        if known and _same_samples(series, groups[baseline]):
            reference = baseline
    return Model(series, scaling, reason, reference)


def _same_samples(series: Series, baseline: Sequence[Run]) -> bool:
    """Whether a baseline of another strategy did the work of the series; unknown work counts as equal."""
    amounts = [series.samples]
    for run in baseline:
        amounts.append(run.result.samples_processed)
    known = [amount for amount in amounts if amount]
    if len(known) == len(amounts):
        return nearly_equal(known)
    return not known


def _terms(series: Series) -> tuple[ScalingTerm, ...]:
    """Terms of a series, with one for the second node if two or more numbers of workers lie on each side."""
    one, several = [], []
    for count, nodes in series.nodes.items():
        if nodes == 1:
            one.append(count)
        elif nodes > 1:
            several.append(count)
    full_node = None
    # Two counts on each side tell a step from the curve about it.
    enough = min(len(one), len(several)) > 1
    if enough and max(one) < min(several):
        full_node = max(one)
    return terms_of(series.update, full_node)


def _why_none(series: Series) -> str:
    counts = len(series.different)
    if counts >= MINIMUM_COUNTS:
        return "a training time is not a positive number"
    there = f"there {plural('is', counts, 'are')} {counts}"
    if series.others:
        listed = ", ".join(map(str, series.others))
        there += f" ({listed} processed a different number of samples)"
    return f"a scaling model needs {MINIMUM_COUNTS} different numbers of workers, and {there}"
