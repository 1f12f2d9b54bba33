"""An estimate of a study: each strategy at any number of workers, from its runs of one worker."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalestudy.analysis.runs import Key, Run, key_of
from scalestudy.features.estimate.model import (
    BACKWARD,
    JITTER_UNKNOWN,
    Drawn,
    Draws,
    Training,
    Unmeasured,
    drawn,
    training,
    unmeasured_of,
)
from scalestudy.features.estimate.network import KnownLink, KnownNetwork, Route, collectives_of, route_of
from scalestudy.features.estimate.one_worker import FEWEST_CALLS, OneWorker, one_worker
from scalestudy.features.estimate.records import (
    Assumption,
    EstimateRecord,
    PredictedPoint,
    PredictedRange,
    PredictedSeries,
)
from scalestudy.features.estimate.uncertain import Uncertain
from scalestudy.study.point import Point
from scalestudy.study.records import StepRecord
from scalestudy.study.strategies import references, traits
from scalestudy.util import units

COUNTS = tuple(2**power for power in range(13))
"""Workers that are considered: 1 to 4,096."""
BATCH = "train.batch_size"
LOSSES = {
    "computing": "computing that does not shrink (workers of a node slow each other)",
    "fixed": "the fixed cost of steps",
    "input": "waiting for input",
    "exchange": "exchange that is not hidden",
    "slowest": "waiting for the slowest worker",
    "uneven": "uneven slices of the batch",
}
"""What keeps from ideal scaling, by its part."""


@dataclass(frozen=True)
class Question:
    """What is to be predicted.

    Attributes:
        counts: Workers.
        target: Efficiency below which workers count as not worth their cost.
        charge: What is charged for an hour of a node; None where it is not stated.
        algorithm: Of all-reduces; each collective's own when None.
        seed: Of the draws.
        draws: How many.
    """

    counts: tuple[int, ...] = COUNTS
    target: float = 0.7
    charge: float | None = None
    algorithm: str | None = None
    seed: int = 0
    draws: int = 2000


def predict(
    study: str, points: Sequence[Point], runs: Sequence[Run], network: KnownNetwork, question: Question,
    *, before: bool, steps: Mapping[str, StepRecord] | None = None,
) -> EstimateRecord:  # fmt: skip
    """The estimate of a study.

    Args:
        study: Its name.
        points: What it asks for; what else there is to a run but the number of workers.
        runs: Finished ones; those of one worker count.
        network: What is known of the network.
        question: What is to be predicted.
        before: Whether no run with more than one worker has ended.
        steps: Times of the steps of one-worker runs, by the run's name.
    """
    asked: dict[Key, Point] = {}
    for point in points:
        if can_scale(point):
            asked.setdefault(key_of(point.strategy, 1, point.swept), point)
    series, missing = [], []
    for key, point in asked.items():
        predicted = _series(key, point, runs, network, question, steps or {})
        if isinstance(predicted, str):
            missing.append(f"{key.strategy}{f' ({key.details})' if key.swept else ''}: {predicted}")
        else:
            series.append(predicted)
    made = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return EstimateRecord(
        study=study, made=made, before=before, seed=question.seed, draws=question.draws,
        target=question.target, charge=question.charge, per_node=network.workers_per_node, series=series,
        missing=missing,
    )  # fmt: skip


def can_scale(point: Point) -> bool:
    """Whether a point's strategy can have several workers whose times count."""
    kind = traits(point.strategy)
    return kind.most_workers != 1 and kind.timed


def one_worker_runs(point: Point, runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """The runs of one worker that stand for a point's strategy, and those that differ in their batch alone.

    Its own strategy's, else plain training's; none whose cores were shared.
    """
    alone = [
        run
        for run in runs
        if run.result.workers == 1
        and not run.result.oversubscribed
        and run.result.engine in (None, point.engine)
    ]
    for strategy in dict.fromkeys((point.strategy, point.implementation, *references(point.engine))):
        alike = [
            run
            for run in alone
            if run.result.strategy == strategy and _but_batch(run.result.swept) == _but_batch(point.swept)
        ]
        same = [run for run in alike if run.result.per_worker_batch == point.train.batch_size]
        if same:
            return same, [run for run in alike if run not in same]
    return [], []


def _but_batch(swept: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in swept.items() if name != BATCH}


def _series(
    key: Key,
    point: Point,
    runs: Sequence[Run],
    network: KnownNetwork,
    question: Question,
    steps: Mapping[str, StepRecord],
) -> PredictedSeries | str:
    """The prediction of a strategy, or why there is none."""
    same, others = one_worker_runs(point, runs)
    per_worker = point.train.batch == "per-worker"
    worker = one_worker(
        same, others=others, per_worker_rule=per_worker, epochs=point.train.epochs,
        steps=steps, word_bytes=8 if point.train.precision == "float64" else 4,
    )  # fmt: skip
    if worker is None:
        return _nothing_measured(point, runs)
    kind, per_node = traits(key.strategy), network.workers_per_node
    counts = [1, *(n for n in sorted(set(question.counts)) if n > 1 and (kind.spans_nodes or n <= per_node))]
    if len(counts) == 1:
        return f"it spans one node, and a node has {per_node} worker{'s' * (per_node > 1)}: see --per-node"
    gpu = any("GPU" in name for run in same for rank in run.ranks for name in rank.devices)
    unmeasured = unmeasured_of(gpu=gpu, xla=point.train.xla, per_node=per_node, storage=network.storage)
    routes: dict[str, tuple[Route, Drawn]] = {}
    trainings: dict[int, Training] = {}
    for n in counts:
        implementation = kind.implementation(max(n, 2), -(-max(n, 2) // per_node))
        if implementation not in routes:
            names = collectives_of(implementation, point.launch.communication, gpu=gpu)
            route = route_of(network, names, question.algorithm, max(worker.bucket_bytes))
            if not route.known:
                return f"no latency and bandwidth of {route.collective}: no check has timed it"
            routes[implementation] = (
                route, drawn(worker, route, unmeasured, seed=question.seed, draws=question.draws)
            )  # fmt: skip
        route, draws = routes[implementation]
        trainings[n] = training(worker, route, unmeasured, draws, n, draws.fabric(n, per_node))
    predicted = [_point(n, trainings[n], trainings[1], per_node, question.charge) for n in counts]
    worth, low, high = (
        max((each.workers for each in predicted if getattr(each.efficiency, end) >= question.target),
            default=None)
        for end in ("value", "low", "high")
    )  # fmt: skip
    fastest = min(predicted, key=lambda each: each.training_seconds.value).workers
    return PredictedSeries(
        strategy=key.strategy, swept=key.swept, collective=route.collective, algorithm=route.algorithm,
        rule="per-worker" if per_worker else "global", one_worker=list(worker.names),
        training_samples=worker.training_samples, gradient_bytes=sum(worker.bucket_bytes),
        buckets=len(worker.bucket_bytes), points=predicted,
        worth=worth, worth_low=low, worth_high=high, fastest=fastest,
        assumptions=list(_assumptions(worker, route, unmeasured, network)),
        sentence=_sentence(key.strategy, predicted, (worth, low, high), fastest, question.target),
    )  # fmt: skip


def _nothing_measured(point: Point, runs: Sequence[Run]) -> str:
    for run in runs:
        shared = run.result.oversubscribed
        if shared and run.result.workers == 1 and run.result.strategy == point.strategy:
            return f"the times of its run of one worker do not count ({shared}): run it again alone"
    return f"no finished run of one worker with batch_size = {point.train.batch_size}"


def _point(n: int, trained: Training, one: Training, per_node: int, charge: float | None) -> PredictedPoint:
    speed = one.training / trained.training
    nodes = -(-n // per_node)
    hours = trained.wall / 3600
    epoch = {part: float(np.mean(seconds)) for part, seconds in trained.parts.items()}
    losses = {part: epoch[part] - float(np.mean(one.parts[part])) / n for part in LOSSES}
    worst = max(losses, key=lambda part: losses[part])
    return PredictedPoint(
        workers=n, nodes=nodes, global_batch=trained.global_batch, updates=trained.updates,
        step_seconds=_range(trained.step_seconds), training_seconds=_range(trained.training),
        wall_seconds=_range(trained.wall), speedup=_range(speed), efficiency=_range(speed / n),
        worker_hours=_range(n * hours), node_hours=_range(nodes * hours),
        charge=None if charge is None else _range(charge * nodes * hours),
        parts=epoch, dominant=worst if n > 1 and losses[worst] > 0 else "",
    )  # fmt: skip


def _range(draws: Draws) -> PredictedRange:
    low, value, high = (float(each) for each in np.quantile(draws, [0.025, 0.5, 0.975]))
    return PredictedRange(value=value, low=low, high=high)


def _sentence(
    strategy: str,
    points: Sequence[PredictedPoint],
    worth: tuple[int | None, int | None, int | None],
    fastest: int,
    target: float,
) -> str:
    """Up to where a strategy is expected to pay (by medians, lower and upper ends), and what ends it."""
    by_count = {point.workers: point for point in points}
    counts = list(by_count)
    count, low, high = (1 if each is None else each for each in worth)
    most = counts[-1]
    ends = "" if low == high else f" (range {low} to {high})"
    if count == most:
        text = f"{strategy} is expected to pay up to {count} workers{ends}, the most considered"
        text += _cause(by_count[most])
    else:
        beyond = by_count[counts[counts.index(count) + 1]]
        number = f"up to {count} workers" if count > 1 else "on one worker only"
        text = f"{strategy} is expected to pay {number}{ends}: at {beyond.workers} its efficiency is "
        text += f"{beyond.efficiency.value:.2f}, below {target:g}{_cause(beyond)}"
    if fastest == most:
        return f"{text}. Of the numbers considered, {most} workers take the least time."
    least = units.duration(by_count[fastest].training_seconds.value)
    return f"{text}. Beyond {fastest} workers ({least}) training takes longer."


def _cause(point: PredictedPoint) -> str:
    if not point.dominant:
        return ""
    share = point.parts[point.dominant] / sum(point.parts.values())
    return f"; most is lost to {LOSSES[point.dominant]} ({100 * share:.0f} % of an epoch)"


def _assumptions(
    worker: OneWorker, route: Route, unmeasured: Unmeasured, network: KnownNetwork
) -> Iterator[Assumption]:
    """What the prediction of a strategy rests on: each number with its range and where it is from."""

    def assumed(name: str, value: str, because: str, *, measured: bool = False) -> Assumption:
        return Assumption(name=name, value=value, because=because, measured=measured)

    runs = f"measured in {worker.runs} run{'s' * (worker.runs > 1)} of one worker"
    epoch, count = worker.epoch_seconds, len(worker.bucket_bytes)
    yield assumed("one worker's epoch", f"{epoch.value:.3g} s ({epoch.low:.3g}–{epoch.high:.3g})", runs,
                  measured=True)  # fmt: skip
    yield assumed(
        "waiting for input",
        f"{100 * worker.input_share:.1f} % of it, the same for a sample at any number of workers",
        f"{runs}; every worker has a loader of its own", measured=True,
    )  # fmt: skip
    yield assumed(
        "fixed cost of a step", f"{_share(worker.fixed_share)} of one worker's step",
        "a straight line through steps of several batches" if worker.fixed_known
        else "not known from one size of slices: time another batch_size on one worker",
        measured=worker.fixed_known,
    )  # fmt: skip
    yield assumed(
        "differences between workers",
        f"standard deviation {_share(unmeasured.differences)} of a step, normal; all wait for the slowest",
        "not measured by one worker",
    )
    ready = "their multiplications" if worker.bucket_work else "their bytes"
    jitter = worker.jitter
    yield assumed(
        "steps of one worker",
        f"standard deviation {_share(JITTER_UNKNOWN)}" if jitter is None
        else f"the slowest of 8 takes {100 * np.median(jitter.slowest(8, seed=0, draws=200)):.2g} % longer",
        f"fewer than {FEWEST_CALLS} calls were timed" if jitter is None
        else f"{sum(jitter.counts):,} calls of one worker, but for its first epoch's warm-up",
        measured=jitter is not None,
    )  # fmt: skip
    yield assumed(
        "another run", f"within a factor of {worker.repeats.high:.2f}", runs,
        measured=worker.runs > 1,
    )  # fmt: skip
    yield assumed(
        "overhead", f"{_share(unmeasured.overhead)} of the computing whenever workers double",
        "what published runs lost beside network and stragglers",
    )  # fmt: skip
    yield assumed(
        "gradients",
        f"{units.size(sum(worker.bucket_bytes))} in {count} bucket{'s' * (count != 1)}, ready by {ready}, "
        f"the last layers' first; back-propagation takes {_share(BACKWARD)} of the computing",
        "as the run recorded them; a layer's backward pass takes about twice its forward pass",
    )
    links = ("between nodes", route.across, "within a node"), ("within a node", route.within, "between nodes")
    for name, link, other in links:
        if link is None:
            yield assumed(name, f"as {other}", "not known")
        else:
            yield assumed(name, _link(link), link.source, measured=link.measured)
    yield assumed(
        "all-reduce", f"{route.algorithm} ({route.collective})",
        f"what this collective does with large messages; {_share(unmeasured.in_training)} of what it takes "
        "alone, since gradients are packed and cores are busy"
        + f"; no check has timed {route.collective}" * route.untimed,
    )  # fmt: skip
    if count > 1:
        yield assumed(
            "hidden exchange", f"{_share(unmeasured.hidden)} of what back-propagation could hide",
            "on CPUs sums take the workers' own cores; with XLA all gradients come at once",
        )  # fmt: skip
    if unmeasured.contention.high:
        yield assumed(
            "contention", f"workers of a node slow each other by {_share(unmeasured.contention)}",
            "not measured: `scalestudy diagnose` does",
        )  # fmt: skip
    yield assumed(
        "shared file system",
        "unlimited" if unmeasured.storage is None else f"{unmeasured.storage / 1e9:.3g} GB/s for all nodes",
        "not given: --storage-bandwidth" if unmeasured.storage is None
        else "as stated; every sample is read once an epoch",
    )  # fmt: skip
    known = network.per_node or network.measured
    yield assumed(
        "workers of a node", str(network.workers_per_node),
        "stated, or as the check had them" if known else "not given: --per-node",
    )  # fmt: skip
    yield assumed(
        "start-up", f"{units.duration(worker.starting_seconds)}, whatever the number of workers",
        "measured on one worker, as is the warm-up of its first epoch "
        f"({units.duration(worker.first_seconds)}); thousands that read their programs from one file system "
        "take more",
    )  # fmt: skip
    yield assumed(
        "evaluation", f"{units.duration(worker.evaluation_seconds)}, divided among the workers",
        "measured on one worker",
    )  # fmt: skip


def _link(link: KnownLink) -> str:
    rate = link.bandwidth
    text = f"{rate.value / 1e9:.3g} GB/s ({rate.low / 1e9:.3g}–{rate.high / 1e9:.3g})"
    unit, length = ("µs", 1e-6) if link.small.value < 1e-3 else ("ms", 1e-3)
    value, low, high = (each / length for each in (link.small.value, link.small.low, link.small.high))
    small = f"{value:.3g} {unit} ({low:.3g}–{high:.3g})"
    if link.ranks == 0:
        return f"{text}, {small} a step"
    return (
        f"{text}; {small} for the smallest message over {link.ranks} ranks, "
        f"of which {_share(link.hops)} grows with them"
    )


def _share(known: Uncertain) -> str:
    if known.low == known.high:
        return f"{100 * known.value:.1f} %"
    return f"{100 * known.low:.3g} to {100 * known.high:.3g} %"
