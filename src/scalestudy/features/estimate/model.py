"""The time of a training by n workers, for every draw of what is uncertain.

A step takes computing + its fixed cost + waiting for input + exchange that is not hidden + waiting for the
slowest worker + overhead that none of these explains.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.features.estimate.network import ALGORITHMS, Fabric, KnownLink, Link, Route
from scalestudy.features.estimate.one_worker import OneWorker
from scalestudy.features.estimate.uncertain import Uncertain, between, exactly

Draws = NDArray[np.float64]
"""Shape [draws]."""
BACKWARD = Uncertain(2 / 3, 0.5, 0.75, "share")
"""Share of a step's computing after the forward pass: gradients of inputs and of weights."""
IN_TRAINING = between(0.95, 1.15)
"""Factor by which an all-reduce takes longer in training than alone, as a check times it: gradients are
packed, and cores are busy. Of real workers over shaped links (`benchmarks/estimate.py`)."""
DIFFERENCES = between(0.0, 0.04)
"""Standard deviation among workers of how fast they are, as a share of a step: 8 % between GPUs of one kind
on average (Sinha et al., "Not All GPUs Are Created Equal", SC22), less where a system was selected."""
JITTER_UNKNOWN = between(0.0, 0.03)
"""Standard deviation of the steps of one worker, as a share of a step, where they were not timed."""
OVERHEAD = between(0.0, 0.07)
"""Share of a step's computing that is lost beside all that is modelled when workers double: frameworks' own
work, power limits, other jobs. One-worker runs show nothing of it. The published U-Net lost by 14 V100 some
5 % in all with Horovod, 15 % with PyTorch's DDP, and 20 to 25 % with TensorFlow's own strategy."""
PARTS = ("computing", "fixed", "input", "exchange", "slowest", "uneven", "overhead")


@dataclass(frozen=True)
class Unmeasured:
    """What runs of one worker cannot show of many.

    Attributes:
        hidden: Share of the exchange that could be hidden behind the backward pass that is.
        contention: Share by which workers of one node slow each other.
        storage: Bytes per second of the shared file system; None where it is not known.
        differences: Standard deviation among workers, as a share of a step.
        overhead: Share of a step's computing that is lost beside all that is modelled when workers double.
        in_training: Factor by which an all-reduce takes longer in training than alone.
    """

    hidden: Uncertain
    contention: Uncertain
    storage: float | None = None
    differences: Uncertain = DIFFERENCES
    overhead: Uncertain = OVERHEAD
    in_training: Uncertain = IN_TRAINING


def unmeasured_of(*, gpu: bool, xla: bool, per_node: int, storage: float | None) -> Unmeasured:
    """As far as device and settings tell.

    With XLA all gradients come at once. On CPUs sums take the cores that compute, so little may be hidden.
    """
    hidden = exactly(0.0) if xla else between(0.7, 1.0) if gpu else between(0.0, 1.0)
    contention = exactly(0.0) if per_node == 1 else between(0.0, 0.05) if gpu else between(0.0, 0.2)
    return Unmeasured(hidden, contention, storage)


@dataclass(frozen=True)
class Drawn:
    """Everything uncertain, drawn; arrays of shape [draws], seconds and shares."""

    epoch: Draws
    repeats: Draws
    fixed: Draws
    backward: Draws
    hidden: Draws
    contention: Draws
    overhead: Draws
    in_training: Draws
    slowest: Callable[[int], Draws]
    """By which share the slowest of n workers takes longer."""
    across: Link
    within: Link

    def fabric(self, workers: int, per_node: int) -> Fabric:
        """The links of so many workers, nodes filled one after another."""
        return Fabric(-(-workers // per_node), min(workers, per_node), self.across, self.within)


def drawn(worker: OneWorker, route: Route, unmeasured: Unmeasured, *, seed: int, draws: int) -> Drawn:
    """Draws of all that is uncertain. Each has a stream of its own, so that one more changes no other."""
    streams = [np.random.default_rng([seed, index]) for index in range(12)]
    across, within = route.across or route.within, route.within or route.across
    if across is None or within is None:
        raise ValueError("a route of which no link is known")
    numbers = (
        *(worker.epoch_seconds, worker.repeats, worker.fixed_share, BACKWARD),
        *(unmeasured.hidden, unmeasured.contention, unmeasured.overhead, unmeasured.in_training),
        *(unmeasured.differences, JITTER_UNKNOWN),
    )
    epoch, repeats, fixed, backward, hidden, contention, overhead, in_training, differences, jitter = (
        number.draws(stream, draws) for number, stream in zip(numbers, streams[2:], strict=True)
    )

    @cache
    def slowest(workers: int) -> Draws:
        among = differences * expected_maximum(workers)
        if worker.jitter is None:
            return among + jitter * expected_maximum(workers)
        return among + worker.jitter.slowest(workers, seed=seed, draws=draws)

    links = _link(across, streams[0], draws), _link(within, streams[1], draws)
    return Drawn(epoch, repeats, fixed, backward, hidden, contention, overhead, in_training, slowest, *links)


def _link(known: KnownLink, random: np.random.Generator, draws: int) -> Link:
    return known.of(*(each.draws(random, draws) for each in (known.small, known.hops, known.bandwidth)))


def ready_shares(bucket_bytes: Sequence[int], bucket_work: Sequence[int]) -> list[float]:
    """Share of the backward pass that is over when each bucket is ready; the last is 1.

    By the buckets' multiplications where they are known, else by their bytes: the backward pass takes twice
    as long as the forward pass in every layer.
    """
    known = len(bucket_work) == len(bucket_bytes) and sum(bucket_work) > 0
    weights = list(bucket_work) if known else list(bucket_bytes)
    if not sum(weights):
        return [1.0] * len(bucket_bytes)
    return [min(1.0, part / sum(weights)) for part in accumulate(weights)]


def exposed(
    costs: Sequence[Any], shares: Sequence[float], backward: Any, hidden: Any = 1.0, overhead: Any = 0.0
) -> Any:
    """Seconds from the end of the backward pass until the last bucket is summed.

    Buckets are ready one after another, the last layers' first, and summed one after another (Li et al.,
    "PyTorch Distributed", VLDB 2020): bucket k begins at max(when it is ready, when the one before it ends).

    Args:
        costs: Seconds of each bucket's sum, without the overhead.
        shares: Of the backward pass that is over when it is ready, as `ready_shares`.
        backward: Seconds of the backward pass.
        hidden: Share of what could be hidden that is: less than 1 where sums take the workers' own cores.
        overhead: Seconds before a sum that buckets share which are ready together: a negotiation, a cycle.
    """
    if not costs:
        return 0.0
    started: Any = -np.inf
    done: Any = 0.0
    for cost, share in zip(costs, shares, strict=True):
        ready = share * backward
        alone = ready > started  # it was not there yet when the one before it began
        started = np.maximum(done, ready)
        done = started + np.where(alone, overhead, 0.0) + cost
    best = np.maximum(done - backward, 0.0)
    return hidden * best + (1 - hidden) * (sum(costs) + overhead)


def expected_maximum(count: int) -> float:
    """Of so many independent standard normal values; 0 for one.

    It grows like √(2 ln n) (Fisher and Tippett 1928); Blom's formula ("Statistical Estimates and Transformed
    Beta-Variables", 1958) is within 0.03 of it.
    """
    from scipy.special import ndtri

    return 0.0 if count < 2 else float(ndtri((count - 0.375) / (count + 0.25)))


@dataclass(frozen=True)
class Training:
    """A training by n workers.

    Attributes:
        step: Seconds of its full step by parts, each of shape [draws]; see `PARTS`.
        repeats: Factor by which this run's steps differ from the mean of such runs.
        parts: Seconds of an epoch by parts, likewise.
        training: Seconds without start-up, evaluation and saving; shape [draws].
        wall: With them.
        updates: Of all epochs.
        global_batch: Samples of a full step.
    """

    step: dict[str, Draws]
    repeats: Draws
    parts: dict[str, Draws]
    training: Draws
    wall: Draws
    updates: int
    global_batch: int

    @property
    def step_seconds(self) -> Draws:
        """Of a full step."""
        total: Draws = sum(self.step.values()) * self.repeats
        return total


def training(
    worker: OneWorker, route: Route, unmeasured: Unmeasured, drawn: Drawn, workers: int, fabric: Fabric
) -> Training:
    """All epochs of a training by so many workers, under the study's own rule of batches."""
    batch = worker.batch * workers if worker.per_worker_rule else worker.batch
    full, rest = divmod(worker.training_samples, batch)  # as `data.order.batches` cuts an epoch
    counts = {rows: count for rows, count in ((batch, full), (rest, 1)) if rows and count}
    steps = {rows: _step(worker, route, unmeasured, drawn, workers, rows, fabric) for rows in counts}
    parts: dict[str, Any] = {
        part: sum(counts[rows] * step[part] for rows, step in steps.items()) for part in PARTS
    }
    repeats = drawn.repeats if workers > 1 else np.ones_like(drawn.repeats)
    seconds: Draws = worker.epochs * sum(parts.values()) * repeats + worker.first_seconds
    wall = seconds + worker.starting_seconds + worker.evaluation_seconds / workers + worker.other_seconds
    updates = worker.epochs * sum(counts.values())
    return Training(steps[max(steps)], repeats, parts, seconds, wall, updates, batch)


def _step(
    worker: OneWorker,
    route: Route,
    unmeasured: Unmeasured,
    drawn: Drawn,
    workers: int,
    rows: int,
    fabric: Fabric,
) -> dict[str, Draws]:
    """A step of `rows` samples: seconds by parts.

    computing, fixed and input are what a worker with an even slice would take; uneven is what the largest
    slice adds, exchange what is not hidden, slowest the wait for the slowest worker, overhead what is lost
    beside all these.
    """
    steps = -(-worker.training_samples // worker.batch)
    working = drawn.epoch * (1 - worker.input_share)
    fixed = drawn.fixed * working / steps
    sample = (working - steps * fixed) / worker.training_samples
    reading = drawn.epoch * worker.input_share / worker.training_samples
    largest, even = -(-rows // workers), rows / workers
    slowed = 1 + (drawn.contention if min(workers, fabric.local) > 1 else 0.0)
    computing = sample * even * slowed
    uneven = (sample * slowed + reading) * (largest - even)
    waiting = reading * even
    if unmeasured.storage and worker.sample_bytes and workers > 1:
        waiting = np.maximum(waiting, rows * worker.sample_bytes / unmeasured.storage - computing - fixed)
    exchange: Any = 0.0
    slowest: Any = 0.0
    overhead: Any = 0.0
    if workers > 1:
        cost, once = ALGORITHMS[route.algorithm], fabric.slowest.overhead * drawn.in_training
        costs = [
            cost(float(size), workers, fabric) * drawn.in_training - once for size in worker.bucket_bytes
        ]
        shares = ready_shares(worker.bucket_bytes, worker.bucket_work)
        backward = drawn.backward * sample * slowed * largest
        exchange = exposed(costs, shares, backward, drawn.hidden, once)
        own = fixed + sample * slowed * largest
        slowest = drawn.slowest(workers) * own
        overhead = drawn.overhead * log2(workers) * own
    zero = np.zeros_like(drawn.epoch)
    values = (computing, fixed, waiting, exchange, slowest, uneven, overhead)
    return {part: value + zero for part, value in zip(PARTS, values, strict=True)}
