"""Measurements from one-worker runs: the time of a step, its parts, and the gradients to exchange."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, variance

import numpy as np

from scalestudy.analysis.runs import Run
from scalestudy.analysis.statistics import student
from scalestudy.features.advise.network import Uncertain, about
from scalestudy.measure.step_times import class_of, seconds_of
from scalestudy.store.records import EpochRecord, Result, StepRecord

REPEATS, REPEATS_FREEDOM = 0.02, 4
"""Prior standard deviation of a run's time among repeated runs, and its degrees of freedom, which are added
to those of the runs (a moderated variance: Smyth, "Linear models and empirical Bayes methods", Statistical
Applications in Genetics and Molecular Biology 3, 2004)."""
FEWEST_CALLS = 20
"""Minimum number of calls for a distribution of step times."""
TAIL = 2.0
"""Factor within which a thousand calls show how long the slowest of many workers takes, if few are slow."""


@dataclass(frozen=True)
class Jitter:
    """The variation of one worker's step times.

    Attributes:
        values: Times of calls in ascending order, as multiples of the mean.
        counts: Number of calls for each value.
        steps: Steps per call.
        damping: Share of the variation that is due to the device: 1, or less if calls come in bursts, as with
            a GPU whose work is queued ahead.
    """

    values: tuple[float, ...]
    counts: tuple[int, ...]
    steps: int = 1
    damping: float = 1.0

    def slowest(self, workers: int) -> float:
        """Return by which share the slowest of n calls exceeds the mean, on average.

        This is the expected maximum of n recorded times. Workers are assumed to be slow independently.
        """
        counts = np.array(self.counts)
        counts[-1] += 1  # slower calls may not have been seen yet
        below = np.cumsum(counts) / counts.sum()
        longest = np.diff(below**workers, prepend=0.0) @ self.values
        mean = np.diff(below, prepend=0.0) @ self.values
        return float(longest / mean - 1) * self.damping * sqrt(sqrt(self.steps))

    @property
    def range(self) -> Uncertain:
        """Factor of `slowest`: few calls show the tail, and steps of a call may be slow together or not."""
        return about(1.0, TAIL * sqrt(sqrt(self.steps)))


@dataclass(frozen=True)
class OneWorker:
    """A training by one worker.

    Attributes:
        batch: Samples in a full step.
        epoch_seconds: Time of a steady epoch.
        repeats: Factor by which the time of another run differs.
        input_share: Share of an epoch spent waiting for input.
        jitter: Variation of step times; None if steps were not timed one by one.
        first_seconds: Extra time of the epochs in which the process warms up.
        evaluation_seconds: Time of all evaluations of a training.
        other_seconds: Time of start-up, compilation, callbacks, saving and proof.
        bucket_bytes: Bytes of each gradient bucket, which one all-reduce sums.
        bucket_work: Multiplications in the forward pass for each bucket's variables; empty if unknown.
        per_worker_rule: Whether every worker takes `batch` samples, so that larger runs have fewer updates.
    """

    batch: int
    training_samples: int
    epochs: int
    epoch_seconds: Uncertain
    repeats: Uncertain
    input_share: float
    jitter: Jitter | None
    first_seconds: float
    evaluation_seconds: float
    other_seconds: float
    bucket_bytes: tuple[int, ...]
    bucket_work: tuple[int, ...]
    runs: int
    per_worker_rule: bool


def one_worker(
    runs: Iterable[Run],
    *,
    per_worker_rule: bool,
    epochs: int,
    steps: Mapping[str, StepRecord] | None = None,
    word_bytes: int = 4,
) -> OneWorker | None:
    """Summarise one-worker runs of one point; None if they recorded no epochs or no gradient sizes.

    Args:
        runs: Runs that differ only in their seed.
        per_worker_rule: Whether `train.batch_size` is the batch of each worker.
        epochs: Number of epochs of the predicted training.
        steps: Step times by the run's name.
        word_bytes: Bytes of a parameter's gradient, used if the run has not recorded its buckets.
    """
    measured = [
        _Measured(run.result, epochs_of_run)
        for run in runs
        if isinstance(run.result, Result)
        and (epochs_of_run := [e for e in run.epochs if isinstance(e, EpochRecord) and e.train_seconds > 0])
    ]
    if not measured:
        return None
    first = measured[0].result
    bucket_bytes = tuple(first.bucket_bytes) or (first.parameters and (first.parameters * word_bytes,))
    if not bucket_bytes:
        return None
    means = [fmean(epoch.train_seconds for epoch in run.steady) for run in measured]
    deviation, freedom = _repeats(means, measured[0].steady)
    reach = student(freedom) * deviation
    waiting = sum(epoch.input_seconds or 0.0 for run in measured for epoch in run.steady)
    total = sum(epoch.train_seconds for run in measured for epoch in run.steady)
    recorded = [(steps or {}).get(run.result.name) for run in measured]
    return OneWorker(
        batch=first.per_worker_batch,
        training_samples=first.training_samples,
        epochs=epochs,
        epoch_seconds=about(exp(fmean(log(mean) for mean in means)), exp(reach / sqrt(len(means)))),
        repeats=about(1.0, exp(reach)),
        input_share=waiting / total if total else 0.0,
        jitter=jitter_of([record for record in recorded if record is not None]),
        first_seconds=max(0.0, fmean(run.warm_up for run in measured)),
        evaluation_seconds=fmean(run.evaluation(epochs) for run in measured),
        other_seconds=fmean(run.other for run in measured),
        bucket_bytes=bucket_bytes,
        bucket_work=tuple(first.bucket_work),
        runs=len(measured),
        per_worker_rule=per_worker_rule,
    )


def jitter_of(records: Sequence[StepRecord]) -> Jitter | None:
    """Return the variation between the steps of these runs; None for fewer than `FEWEST_CALLS` calls.

    Calls longer than any call of later epochs are left out: they are warm-up (tracing, autotuning, caches).
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
    # If epoch means vary less than with independent calls, long calls make up for short ones.
    most = among / float(chi2.ppf(0.025, freedom)) if freedom else within
    damping = sqrt(min(1.0, most / within)) if within else 1.0
    values, counts = zip(*sorted(pooled.items()), strict=True)
    return Jitter(values, counts, max(record.steps_per_call for record in records), damping)


@dataclass(frozen=True)
class _Measured:
    """A run with records of its epochs. Imported runs are excluded, because they lack the parts of a step."""

    result: Result
    epochs: list[EpochRecord]

    @property
    def steady(self) -> list[EpochRecord]:
        """Epochs without warm-up; all epochs if there are none."""
        return [epoch for epoch in self.epochs[1:] if not epoch.resumed] or self.epochs

    @property
    def warm_up(self) -> float:
        """Total seconds by which the epochs exceed the same number of steady ones."""
        steady = fmean(epoch.train_seconds for epoch in self.steady)
        return sum(epoch.train_seconds - steady for epoch in self.epochs)

    @property
    def other(self) -> float:
        """Seconds from start to result that are neither training nor evaluation."""
        wall = self.result.wall_seconds or sum(self.result.phases.values())
        return max(0.0, wall - self.result.training_seconds - self.evaluation(len(self.epochs)))

    def evaluation(self, epochs: int) -> float:
        """Return the seconds of evaluation in a training of `epochs` epochs."""
        recorded = sum(epoch.evaluation_seconds for epoch in self.epochs)
        return (recorded or self.result.phases.get("evaluation", 0.0)) * epochs / len(self.epochs)


def _repeats(means: Sequence[float], epochs: Sequence[EpochRecord]) -> tuple[float, int]:
    """Return the standard deviation of log times among repeated runs, and its degrees of freedom.

    It is the moderated deviation of the runs' means, and at least the standard error of the first run's mean.
    """
    freedom = len(means) - 1 + REPEATS_FREEDOM
    squares = variance([log(mean) for mean in means]) * (len(means) - 1) if len(means) > 1 else 0.0
    moderated = (squares + REPEATS_FREEDOM * REPEATS**2) / freedom
    logs = [log(epoch.train_seconds) for epoch in epochs]
    single = variance(logs) / len(logs) if len(logs) > 1 else 0.0
    return min(sqrt(max(moderated, single)), 0.5), freedom
