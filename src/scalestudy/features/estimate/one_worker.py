"""What runs of one worker show: the time of a step and of what it is made, and what would be exchanged."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, variance

import numpy as np
from numpy.typing import NDArray

from scalestudy.analysis.runs import Run
from scalestudy.analysis.statistics import student
from scalestudy.features.estimate.uncertain import NORMAL_95, Uncertain, about, between
from scalestudy.measure.step_times import class_of, seconds_of
from scalestudy.study.records import EpochRecord, Result, StepRecord

STARTING = ("start-up", "framework", "join", "build", "compile")
"""Phases before the first step."""
FIXED_UNKNOWN = (0.0, 0.3)
"""Share of a one-worker step that may not shrink with its slice, where only one size of slice was timed."""
REPEATS, REPEATS_FREEDOM = 0.02, 4
"""Standard deviation of a run's time among repeated runs, and the degrees of freedom that it counts for
beside those of the runs themselves (a moderated variance: Smyth, "Linear models and empirical Bayes methods",
Statistical Applications in Genetics and Molecular Biology 3, 2004)."""
FEWEST_CALLS = 20
"""Calls that a distribution of steps is taken from at least."""


@dataclass(frozen=True)
class Jitter:
    """How much the steps of one worker differ in time.

    Attributes:
        values: Times of calls, rising, as multiples of a mean call.
        counts: How many calls took each.
        steps: Of a call.
        damping: Share of their differences that is the device's: 1, or less where calls come in bursts, as of
            a GPU that is given work ahead.
    """

    values: tuple[float, ...]
    counts: tuple[int, ...]
    steps: int = 1
    damping: float = 1.0

    def slowest(self, workers: int, *, seed: int, draws: int) -> NDArray[np.float64]:
        """By which share the slowest of n calls is longer than a mean one, on average; shape [draws].

        The expected maximum of n values of the recorded distribution, bootstrapped (Rubin, "The Bayesian
        bootstrap", 1981). Its slowest calls follow a generalised Pareto distribution, by probability-weighted
        moments (Hosking and Wallis, Technometrics 29, 1987), so that tails of any weight go on beyond what
        was seen. Workers are taken to be slow independently of each other; whether the steps of one call are
        slow together or independently, a call does not show, and both are drawn.
        """
        from scipy.special import beta, betainc

        random = np.random.default_rng([seed, workers])
        values, counts = np.array(self.values), np.array(self.counts, float)
        counts[-1] += 1  # the slowest again: what is slower still was not seen yet
        total = counts.sum()
        slower = np.cumsum(counts[::-1])[::-1]  # calls of at least this time
        first = int((slower >= max(10.0, sqrt(total))).sum()) - 1
        if slower[first] > total / 4 and first + 1 < len(values):
            first += 1  # most calls are alike, and fewer than that are slow
        weights = random.gamma(counts, size=(draws, len(counts)))
        weights /= weights.sum(axis=1, keepdims=True)
        below = np.cumsum(weights, axis=1)
        share = 1 - below[:, first] + weights[:, first]
        excess, tail = values[first:] - values[first], weights[:, first:] / share[:, None]
        ranks = np.cumsum(tail[:, ::-1], axis=1)[:, ::-1] - tail / 2
        mean, moment = tail @ excess, (tail * ranks) @ excess
        shape = (
            2 - mean / np.maximum(mean - 2 * moment, 1e-12) + random.normal(0, 1, draws) / sqrt(slower[first])
        )
        shape = np.clip(shape, 1e-4, 0.9)
        scale = mean * (1 - shape)

        def maximum(count: int) -> NDArray[np.float64]:
            powers = np.diff(below[:, :first] ** count, axis=1, prepend=0.0)
            within = 1 - (1 - share) ** count
            longest = share**shape * count * beta(1 - shape, count) * betainc(1 - shape, count, share)
            found: NDArray[np.float64] = (
                powers @ values[:first] + values[first] * within + scale / shape * (longest - within)
            )
            return found

        together = self.steps ** random.uniform(0.0, 0.5, draws)
        longer = (maximum(workers) / maximum(1) - 1) * together * self.damping
        positive: NDArray[np.float64] = np.maximum(longer, 0.0)
        return positive


@dataclass(frozen=True)
class OneWorker:
    """A training by one worker; seconds, bytes, samples.

    Attributes:
        batch: Samples of a full step.
        training_samples: Of an epoch.
        epochs: Of a training.
        epoch_seconds: Of a steady epoch.
        repeats: Factor by which another run's time differs.
        input_share: Part of an epoch spent waiting for input.
        fixed_share: Part of what is not waiting that is the same for every step, whatever its samples.
        fixed_known: Whether several sizes of slices were timed.
        jitter: How much steps differ; None where they were not timed one by one.
        first_seconds: By how much the epochs in which the process warmed up were longer.
        evaluation_seconds: Of a training.
        starting_seconds: Before the first step.
        other_seconds: Of a training: callbacks, saving, proof.
        bucket_bytes: Gradients that are summed at once.
        bucket_work: Multiplications behind each; empty where they are not known.
        sample_bytes: Of a prepared sample; None where it is not known.
        runs: How many there were.
        per_worker_rule: Whether every worker takes `batch` samples, so that larger runs have fewer updates.
        names: Of the runs.
    """

    batch: int
    training_samples: int
    epochs: int
    epoch_seconds: Uncertain
    repeats: Uncertain
    input_share: float
    fixed_share: Uncertain
    fixed_known: bool
    jitter: Jitter | None
    first_seconds: float
    evaluation_seconds: float
    starting_seconds: float
    other_seconds: float
    bucket_bytes: tuple[int, ...]
    bucket_work: tuple[int, ...]
    sample_bytes: float | None
    runs: int
    per_worker_rule: bool
    names: tuple[str, ...]


def one_worker(
    runs: Sequence[Run],
    *,
    per_worker_rule: bool,
    epochs: int,
    others: Iterable[Run] = (),
    steps: Mapping[str, StepRecord] | None = None,
    word_bytes: int = 4,
) -> OneWorker | None:
    """What these runs of one point show; None where no epoch of them was recorded.

    Args:
        runs: Of one worker, alike but for the seed.
        per_worker_rule: Whether `train.batch_size` is a worker's.
        epochs: Of the training that is predicted.
        others: Runs of one worker that differ in the size of the batch alone.
        steps: Times of their steps, by the run's name.
        word_bytes: Of a parameter's gradient, where the run has not recorded its buckets.
    """
    measured = _with_epochs(runs)
    if not measured:
        return None
    first = measured[0].result
    means = [fmean(epoch.train_seconds for epoch in run.steady) for run in measured]
    deviation, freedom = _repeats(means, measured[0].steady)
    reach = student(freedom) * deviation
    waiting = sum(epoch.input_seconds for run in measured for epoch in run.steady)
    total = sum(epoch.train_seconds for run in measured for epoch in run.steady)
    fixed = _fixed_share([*measured, *_with_epochs(others)], first.per_worker_batch)
    recorded = [(steps or {}).get(run.result.name) for run in measured]
    return OneWorker(
        batch=first.per_worker_batch,
        training_samples=first.training_samples,
        epochs=epochs,
        epoch_seconds=about(exp(fmean(log(mean) for mean in means)), exp(reach / sqrt(len(means)))),
        repeats=about(1.0, exp(reach)),
        input_share=waiting / total if total else 0.0,
        fixed_share=between(*FIXED_UNKNOWN) if fixed is None else fixed,
        fixed_known=fixed is not None,
        jitter=jitter_of([record for record in recorded if record is not None]),
        first_seconds=max(0.0, fmean(_warm_up(run) for run in measured)),
        evaluation_seconds=fmean(_evaluation(run, epochs) for run in measured),
        starting_seconds=fmean(
            sum(run.result.phases.get(phase, 0.0) for phase in STARTING) for run in measured
        ),
        other_seconds=fmean(_other(run) for run in measured),
        bucket_bytes=tuple(first.bucket_bytes) or (first.parameters * word_bytes,),
        bucket_work=tuple(first.bucket_work),
        sample_bytes=first.sample_bytes,
        runs=len(measured),
        per_worker_rule=per_worker_rule,
        names=tuple(run.result.name for run in measured),
    )


def jitter_of(records: Sequence[StepRecord]) -> Jitter | None:
    """The differences between the steps of these runs; None of too few calls.

    What the first epoch of a process warms up by (tracing, autotuning, caches) is left out: calls that are
    longer than any of the later epochs.
    """
    from scipy.stats import chi2

    pooled: Counter[float] = Counter()
    among, within, freedom = 0.0, 0.0, 0
    for record in records:
        later = [epoch for epoch in record.epochs[1:] if epoch.calls]
        if not later:
            continue
        limit = class_of(max(epoch.longest for epoch in later))
        calls = {seconds_of(index): count for index, count in record.calls.items() if index <= limit}
        mean = sum(seconds * count for seconds, count in calls.items()) / sum(calls.values())
        pooled.update({seconds / mean: count for seconds, count in calls.items()})
        steady = sum(epoch.step_seconds for epoch in later) / sum(epoch.calls for epoch in later)
        among += sum(epoch.calls * (epoch.step_seconds / epoch.calls / steady - 1) ** 2 for epoch in later)
        freedom += len(later) - 1
    total = sum(pooled.values())
    if total < FEWEST_CALLS:
        return None
    within = sum(count * (value - 1) ** 2 for value, count in pooled.items()) / total
    # Means of epochs that differ less than independent calls would: long calls make up for short ones.
    most = among / float(chi2.ppf(0.025, freedom)) if freedom else within
    damping = sqrt(min(1.0, most / within)) if within else 1.0
    values, counts = zip(*sorted(pooled.items()), strict=True)
    return Jitter(values, counts, max(record.steps_per_call for record in records), damping)


@dataclass(frozen=True)
class _Measured:
    """A run of ours with records of its epochs."""

    result: Result
    epochs: list[EpochRecord]

    @property
    def steady(self) -> list[EpochRecord]:
        """Epochs without warming up; where there are none, what there is."""
        return [epoch for epoch in self.epochs[1:] if not epoch.resumed] or self.epochs


def _with_epochs(runs: Iterable[Run]) -> list[_Measured]:
    """Runs of ours that took time; numbers from elsewhere do not show what a step is made of."""
    measured = []
    for run in runs:
        epochs = [epoch for epoch in run.epochs if isinstance(epoch, EpochRecord) and epoch.train_seconds > 0]
        if isinstance(run.result, Result) and epochs:
            measured.append(_Measured(run.result, epochs))
    return measured


def _repeats(means: Sequence[float], epochs: Sequence[EpochRecord]) -> tuple[float, int]:
    """Standard deviation of log times among repeated runs, and its degrees of freedom.

    From the runs' means, moderated; no less than what the epochs of the first leave open of its own mean.
    """
    freedom = len(means) - 1 + REPEATS_FREEDOM
    squares = variance([log(mean) for mean in means]) * (len(means) - 1) if len(means) > 1 else 0.0
    moderated = (squares + REPEATS_FREEDOM * REPEATS**2) / freedom
    logs = [log(epoch.train_seconds) for epoch in epochs]
    single = variance(logs) / len(logs) if len(logs) > 1 else 0.0
    return min(sqrt(max(moderated, single)), 0.5), freedom


def _warm_up(run: _Measured) -> float:
    """Seconds by which a run's epochs were longer together than as many steady ones."""
    steady = fmean(epoch.train_seconds for epoch in run.steady)
    return sum(epoch.train_seconds - steady for epoch in run.epochs)


def _evaluation(run: _Measured, epochs: int) -> float:
    """Seconds of evaluation in a training of so many epochs."""
    recorded = sum(epoch.evaluation_seconds for epoch in run.epochs)
    return (recorded or run.result.phases.get("evaluation", 0.0)) * epochs / len(run.epochs)


def _other(run: _Measured) -> float:
    spent = ("steps", "input", "training", "evaluation", *STARTING)
    return sum(seconds for phase, seconds in run.result.phases.items() if phase not in spent)


def _fixed_share(runs: Iterable[_Measured], batch: int) -> Uncertain | None:
    """Of a step of so many samples, by a straight line through the time of steps of several batches.

    None where all runs had one size.
    """
    rows: dict[int, list[float]] = {}
    for run in runs:
        steps = -(-run.result.training_samples // run.result.per_worker_batch)
        for epoch in run.steady:
            if epoch.samples and epoch.steps == steps:
                computing = (epoch.train_seconds - epoch.input_seconds) / epoch.steps
                rows.setdefault(round(epoch.samples / epoch.steps), []).append(computing)
    if len(rows) < 2 or max(rows) < 1.5 * min(rows):
        return None
    low, high = min(rows), max(rows)
    one, two = fmean(rows[low]), fmean(rows[high])
    slope = max(0.0, (two - one) / (high - low))
    fixed = max(0.0, one - slope * low)
    whole = fixed + slope * batch
    share = fixed / whole if whole else 0.0
    wide = max(0.01, NORMAL_95 * max(_relative_error(rows[size]) for size in (low, high)))
    return Uncertain(share, max(0.0, share - wide), min(1.0, share + wide), "share")


def _relative_error(values: Sequence[float]) -> float:
    """Standard error of a mean, as a share of it; a tenth for a single value."""
    return sqrt(variance(values) / len(values)) / fmean(values) if len(values) > 1 else 0.1
