"""Model of the time of a training with n workers, from measurements of one-worker runs.

It is computed for every draw of the uncertain numbers.

A step is the sum of computing, its fixed cost, waiting for input, exchange that is not hidden, waiting for
the slowest worker, the excess of the largest slice, and overhead that these do not explain.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import exp, log, log2, sqrt
from statistics import fmean, variance
from typing import Any, NamedTuple

import numpy as np

from scalestudy.analysis.runs import Run
from scalestudy.analysis.statistics import student
from scalestudy.features.advise.network import (
    ALGORITHMS,
    Draws,
    Fabric,
    Route,
    Uncertain,
    about,
    between,
    exactly,
)
from scalestudy.measure.clock import class_of, seconds_of
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


BACKWARD = Uncertain(2 / 3, 0.5, 0.75, "share")
"""Share of the backward pass in a step's computing: gradients of inputs and of weights."""
JITTER_UNKNOWN = between(0.0, 0.03)
"""Standard deviation of one worker's step times, as a share of a step, if steps were not timed."""
FIXED = between(0.0, 0.3)
DIFFERENCES = between(0.0, 0.04)
"""GPUs of one kind differ by 8 % on average (Sinha et al., "Not All GPUs Are Created Equal", SC22), and by
less in systems with selected GPUs."""
OVERHEAD = between(0.0, 0.07)
"""Frameworks' own work, power limits, other jobs. With 14 V100, the published U-Net lost about 5 % in total
with Horovod, 15 % with PyTorch's DDP, and 20 to 25 % with TensorFlow's own strategy."""
IN_TRAINING = between(0.95, 1.15)
"""Gradients are packed, and cores are busy. Measured over shaped links (`benchmarks/estimate.py`)."""
PARTS = ("computing", "fixed", "input", "exchange", "slowest", "uneven", "overhead")
"""Parts of a step. computing, fixed and input are the times of a worker with an even slice. uneven is the
excess of the largest slice, exchange the time that is not hidden, slowest the wait for the slowest worker,
overhead the rest."""


@dataclass(frozen=True)
class Unmeasured:
    """Quantities that one-worker runs cannot show.

    Attributes:
        hidden: Share of the possible overlap of exchange and backward pass that is achieved.
        contention: Share by which workers of one node slow each other.
        fixed: Share of a one-worker step, without waiting for input, that does not shrink with its slice.
        differences: Standard deviation of speed among workers, as a share of a step.
        overhead: Share of a step's computing lost to unmodelled causes with each doubling of the workers.
        in_training: Ratio of the time of an all-reduce in training to its time alone.
    """

    hidden: Uncertain
    contention: Uncertain
    fixed: Uncertain = FIXED
    differences: Uncertain = DIFFERENCES
    overhead: Uncertain = OVERHEAD
    in_training: Uncertain = IN_TRAINING


def unmeasured_of(*, gpu: bool, xla: bool, per_node: int) -> Unmeasured:
    """Return the ranges for a device and settings.

    With XLA, all gradients arrive at once. On CPUs, sums use the cores that compute, so little may be hidden.
    """
    hidden = exactly(0.0) if xla else between(0.7, 1.0) if gpu else between(0.0, 1.0)
    contention = exactly(0.0) if per_node == 1 else between(0.0, 0.05) if gpu else between(0.0, 0.2)
    return Unmeasured(hidden, contention)


class PredictedTraining(NamedTuple):
    """A training by n workers, in seconds: a full step (`step`) and an epoch (`parts`), each by `PARTS`.

    `wall` includes start-up, evaluation and saving; `seconds` does not.
    """

    step: dict[str, Draws]
    step_seconds: Draws
    parts: dict[str, Draws]
    seconds: Draws
    wall: Draws
    updates: int
    global_batch: int


class StepModel:
    """Model of a strategy's steps with any number of workers.

    Uncertain numbers are drawn once, so that numbers of workers can be compared. At least one link of `route`
    must be known; it replaces the other if that is unknown.
    """

    def __init__(
        self, worker: OneWorker, route: Route, unmeasured: Unmeasured, *, seed: int = 0, draws: int = 2000
    ) -> None:
        self.worker, self.algorithm = worker, ALGORITHMS[route.algorithm]
        across, within = route.across or route.within, route.within or route.across
        assert across is not None
        assert within is not None
        # Each number has its own stream, so that adding one changes no other.
        streams = [np.random.default_rng([seed, index]) for index in range(12)]
        self.across, self.within = (
            link.of(*(number.draws(stream, draws) for number in (link.small, link.hops, link.bandwidth)))
            for link, stream in zip((across, within), streams[:2], strict=True)
        )
        numbers = (
            *(worker.epoch_seconds, worker.repeats, unmeasured.fixed, BACKWARD),
            *(unmeasured.hidden, unmeasured.contention, unmeasured.overhead, unmeasured.in_training),
            *(unmeasured.differences, worker.jitter.range if worker.jitter else JITTER_UNKNOWN),
        )
        values = [number.draws(stream, draws) for number, stream in zip(numbers, streams[2:], strict=True)]
        self.epoch, self.repeats, self.fixed, self.backward = values[:4]
        self.hidden, self.contention, self.overhead, self.in_training, differences, jitter = values[4:]

        @cache
        def slowest(workers: int) -> Draws:
            """Return by which share the slowest of n workers exceeds the mean."""
            usual = expected_maximum(workers)
            longest = worker.jitter.slowest(workers) if worker.jitter else usual
            return differences * usual + jitter * longest

        self.slowest = slowest

    def training(self, workers: int, per_node: int) -> PredictedTraining:
        """Predict all epochs with `workers` workers; nodes are filled one after another."""
        worker = self.worker
        fabric = Fabric(-(-workers // per_node), min(workers, per_node), self.across, self.within)
        batch = worker.batch * workers if worker.per_worker_rule else worker.batch
        full, rest = divmod(worker.training_samples, batch)  # as `data.order.batches` cuts an epoch
        counts = {rows: count for rows, count in ((batch, full), (rest, 1)) if rows and count}
        steps = {rows: self._step(workers, rows, fabric) for rows in counts}
        parts: dict[str, Any] = {
            part: sum(counts[rows] * step[part] for rows, step in steps.items()) for part in PARTS
        }
        repeats = self.repeats if workers > 1 else np.ones_like(self.repeats)
        seconds: Draws = worker.epochs * sum(parts.values()) * repeats + worker.first_seconds
        wall = seconds + worker.evaluation_seconds / workers + worker.other_seconds
        step = steps[max(steps)]
        step_seconds: Draws = sum(step.values()) * repeats
        updates = worker.epochs * sum(counts.values())
        return PredictedTraining(step, step_seconds, parts, seconds, wall, updates, batch)

    def _step(self, workers: int, rows: int, fabric: Fabric) -> dict[str, Draws]:
        """Return the seconds of a step of `rows` samples, by part."""
        worker = self.worker
        steps = -(-worker.training_samples // worker.batch)
        working = self.epoch * (1 - worker.input_share)
        fixed = self.fixed * working / steps
        sample = (working - steps * fixed) / worker.training_samples
        reading = self.epoch * worker.input_share / worker.training_samples
        largest, even = -(-rows // workers), rows / workers
        slowed = 1 + (self.contention if min(workers, fabric.local) > 1 else 0.0)
        computing = sample * even * slowed
        uneven = (sample * slowed + reading) * (largest - even)
        exchange: Any = 0.0
        slowest: Any = 0.0
        overhead: Any = 0.0
        if workers > 1:
            once = fabric.slowest.overhead * self.in_training
            costs = [
                self.algorithm(float(size), workers, fabric) * self.in_training - once
                for size in worker.bucket_bytes
            ]
            shares = ready_shares(worker.bucket_bytes, worker.bucket_work)
            backward = self.backward * sample * slowed * largest
            exchange = exposed(costs, shares, backward, self.hidden, once)
            busy = fixed + sample * slowed * largest
            slowest = self.slowest(workers) * busy
            overhead = self.overhead * log2(workers) * busy
        values = (computing, fixed, reading * even, exchange, slowest, uneven, overhead)
        return {part: value + np.zeros_like(self.epoch) for part, value in zip(PARTS, values, strict=True)}


def ready_shares(bucket_bytes: Sequence[int], bucket_work: Sequence[int]) -> list[float]:
    """Return the share of the backward pass that is done when each bucket is ready; the last is 1.

    The shares follow the buckets' multiplications if known, else their bytes. The backward pass is assumed to
    take twice as long as the forward pass in every layer.
    """
    counted = len(bucket_work) == len(bucket_bytes) and sum(bucket_work) > 0
    weights = list(bucket_work) if counted else list(bucket_bytes)
    if not sum(weights):
        return [1.0] * len(bucket_bytes)
    return [min(1.0, part / sum(weights)) for part in accumulate(weights)]


def exposed(
    costs: Sequence[Any], shares: Sequence[float], backward: Any, hidden: Any = 1.0, overhead: Any = 0.0
) -> Any:
    """Return the seconds from the end of the backward pass until the last bucket is summed.

    Buckets become ready one after another, those of the last layers first, and are summed in this order (Li
    et al., "PyTorch Distributed", VLDB 2020). The sum of a bucket begins when the bucket is ready and the
    previous sum has ended.

    Args:
        costs: Seconds of each bucket's sum, without the overhead.
        shares: Shares of the backward pass done when each bucket is ready, from `ready_shares`.
        backward: Seconds of the backward pass.
        hidden: Share of the possible overlap that is achieved; less than 1 if sums use the workers' cores.
        overhead: Seconds before a sum, for a negotiation or cycle; shared by buckets that wait together.
    """
    if not costs:
        return 0.0
    started: Any = -np.inf
    done: Any = 0.0
    for cost, share in zip(costs, shares, strict=True):
        ready = share * backward
        alone = ready > started  # it was not ready when the previous sum began
        started = np.maximum(done, ready)
        done = started + np.where(alone, overhead, 0.0) + cost
    best = np.maximum(done - backward, 0.0)
    return hidden * best + (1 - hidden) * (sum(costs) + overhead)


def expected_maximum(count: int) -> float:
    """Return the expected maximum of `count` independent standard normal values; 0 for one value.

    It grows like √(2 ln n) (Fisher and Tippett 1928). Blom's formula ("Statistical Estimates and Transformed
    Beta-Variables", 1958) is accurate to 0.03.
    """
    from scipy.special import ndtri

    return 0.0 if count < 2 else float(ndtri((count - 0.375) / (count + 0.25)))
