"""The time of a training by n workers, for every draw of what is uncertain."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalestudy.features.estimate.cost import ALGORITHMS, Fabric, Link
from scalestudy.features.estimate.fit_link import KnownLink
from scalestudy.features.estimate.network import Path
from scalestudy.features.estimate.one_worker import OneWorker
from scalestudy.features.estimate.overlap import exposed, ready_shares
from scalestudy.features.estimate.straggling import expected_maximum
from scalestudy.features.estimate.uncertain import Uncertain, between, exactly

Draws = NDArray[np.float64]
BACKWARD = Uncertain(2 / 3, 0.5, 0.75, "share")
"""Share of a step's computing after the forward pass: gradients of inputs and of weights."""
PARTS = ("computing", "fixed", "input", "exchange", "slowest", "uneven")


@dataclass(frozen=True)
class Terms:
    """What one worker does not tell of many.

    Attributes:
        hidden: Share of what could be hidden behind the backward pass that is.
        contention: Share by which workers of one node slow each other.
        storage: Bytes per second of the shared file system; None where it is not known.
    """

    hidden: Uncertain
    contention: Uncertain
    storage: float | None = None


def terms_of(*, gpu: bool, xla: bool, per_node: int, storage: float | None) -> Terms:
    """As far as device and settings tell.

    With XLA all gradients come at once. On CPUs sums take the cores that compute, so little may be hidden.
    """
    hidden = exactly(0.0) if xla else between(0.7, 1.0) if gpu else between(0.0, 1.0)
    contention = exactly(0.0) if per_node == 1 else between(0.0, 0.05) if gpu else between(0.0, 0.2)
    return Terms(hidden, contention, storage)


@dataclass(frozen=True)
class Drawn:
    """Everything uncertain, drawn; arrays of shape [draws], seconds and shares."""

    epoch: Draws
    fixed: Draws
    backward: Draws
    spread: Draws
    hidden: Draws
    contention: Draws
    across: Link
    within: Link


def drawn(worker: OneWorker, path: Path, terms: Terms, *, seed: int, draws: int) -> Drawn:
    """Draws of all that is uncertain. Each has a stream of its own, so that one more changes no other."""
    streams = [np.random.default_rng([seed, index]) for index in range(8)]
    across = path.across or path.within
    within = path.within or path.across
    if across is None or within is None:
        raise ValueError("a path of which no link is known")
    own = (worker.epoch_seconds, worker.fixed_share, BACKWARD, worker.spread)
    numbers = [*own, terms.hidden, terms.contention]
    epoch, fixed, backward, spread, hidden, contention = (
        each.draws(stream, draws) for each, stream in zip(numbers, streams[2:], strict=True)
    )
    links = _link(across, streams[0], draws), _link(within, streams[1], draws)
    return Drawn(epoch, fixed, backward, spread, hidden, contention, *links)


def _link(known: KnownLink, random: np.random.Generator, draws: int) -> Link:
    small, hops, rate = (each.draws(random, draws) for each in (known.small, known.hops, known.bandwidth))
    return known.of(small, hops, rate)


@dataclass(frozen=True)
class Step:
    """Seconds of a step by parts, each of shape [draws]; see `PARTS`."""

    parts: dict[str, Any]

    @property
    def seconds(self) -> Any:
        """Of all parts."""
        return sum(self.parts.values())


def step(
    worker: OneWorker, path: Path, terms: Terms, drawn: Drawn, workers: int, rows: int, fabric: Fabric
) -> Step:
    """A step of `rows` samples by so many workers.

    computing, fixed and input are what a worker with an even slice would take; uneven is what the largest
    slice adds, exchange what is not hidden, slowest the wait for the slowest worker.
    """
    steps = -(-worker.training_samples // worker.batch)
    working = drawn.epoch * (1 - worker.input_share)
    fixed = drawn.fixed * working / steps
    each = (working - steps * fixed) / worker.training_samples
    reading = drawn.epoch * worker.input_share / worker.training_samples
    largest, even = -(-rows // workers), rows / workers
    slowed = 1 + (drawn.contention if min(workers, fabric.local) > 1 else 0.0)
    computing = each * even * slowed
    uneven = (each * slowed + reading) * (largest - even)
    waiting = reading * even
    if terms.storage and worker.sample_bytes and workers > 1:
        waiting = np.maximum(waiting, rows * worker.sample_bytes / terms.storage - computing - fixed)
    exchange: Any = np.zeros_like(drawn.epoch)
    slowest: Any = np.zeros_like(drawn.epoch)
    if workers > 1:
        cost = ALGORITHMS[path.algorithm]
        overhead = fabric.slowest.overhead
        costs = [cost(float(size), workers, fabric) - overhead for size in worker.bucket_bytes]
        shares = ready_shares(worker.bucket_bytes, worker.bucket_work)
        backward = drawn.backward * each * slowed * largest
        exchange = exchange + exposed(costs, shares, backward, drawn.hidden, overhead)
        slowest = drawn.spread * expected_maximum(workers) * (fixed + each * slowed * largest)
    zero = np.zeros_like(drawn.epoch)
    found = (computing, fixed, waiting, exchange, slowest, uneven)
    return Step({name: value + zero for name, value in zip(PARTS, found, strict=True)})


@dataclass(frozen=True)
class Training:
    """A training by n workers; arrays of shape [draws].

    Attributes:
        full: Its full step.
        parts: Seconds of an epoch by parts; see `PARTS`.
        training: Seconds without start-up, evaluation and saving.
        wall: With them.
        updates: Of all epochs.
        global_batch: Samples of a full step.
    """

    full: Step
    parts: dict[str, Any]
    training: Draws
    wall: Draws
    updates: int
    global_batch: int


def training(
    worker: OneWorker, path: Path, terms: Terms, drawn: Drawn, workers: int, fabric: Fabric
) -> Training:
    """All epochs of a training by so many workers, under the study's own rule of batches."""
    batch = worker.batch * workers if worker.per_worker_rule else worker.batch
    rows = _steps(worker.training_samples, batch)
    found = {size: step(worker, path, terms, drawn, workers, size, fabric) for size in rows}
    parts = {name: sum(rows[size] * each.parts[name] for size, each in found.items()) for name in PARTS}
    seconds = worker.epochs * sum(parts.values()) + worker.first_seconds
    wall = seconds + worker.starting_seconds + worker.evaluation_seconds / workers + worker.other_seconds
    return Training(found[max(found)], parts, seconds, wall, worker.epochs * sum(rows.values()), batch)


def _steps(samples: int, batch: int) -> dict[int, int]:
    """How many steps of an epoch have so many samples, as `data.order.batches` cuts it."""
    full, rest = divmod(samples, batch)
    return {size: count for size, count in ((batch, full), (rest, 1)) if size and count}


def fabric_of(drawn: Drawn, workers: int, per_node: int) -> Fabric:
    """Of so many workers, nodes filled one after another."""
    return Fabric(-(-workers // per_node), min(workers, per_node), drawn.across, drawn.within)
