"""An estimate of a study: each strategy at any number of workers, from its runs of one worker."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalestudy.features.estimate.assumptions import assumptions
from scalestudy.features.estimate.network import Network, Path, collectives_of, path_of
from scalestudy.features.estimate.one_worker import one_worker
from scalestudy.features.estimate.times import (
    Drawn,
    Training,
    drawn,
    fabric_of,
    terms_of,
    training,
)
from scalestudy.features.estimate.words import sentence
from scalestudy.analysis.runs import Key, Run, key_of
from scalestudy.features.estimate.records import EstimateRecord, ForeseenPoint, ForeseenSeries, Interval
from scalestudy.study.point import Point
from scalestudy.study.strategies import references, traits

COUNTS = tuple(2**power for power in range(13))
"""Workers that are looked at: 1 to 4,096."""
DRAWS, SEED = 2000, 0
BATCH = "train.batch_size"


@dataclass(frozen=True)
class Wish:
    """What is to be foreseen.

    Attributes:
        counts: Workers.
        target: Efficiency below which workers count as not worth their cost.
        charge: What is charged for an hour of a node; None where nobody says.
        algorithm: Of all-reduces; each collective's own when None.
        seed: Of the draws.
        draws: How many.
    """

    counts: tuple[int, ...] = COUNTS
    target: float = 0.7
    charge: float | None = None
    algorithm: str | None = None
    seed: int = SEED
    draws: int = DRAWS


def foresee(
    study: str, points: Sequence[Point], runs: Sequence[Run], network: Network, wish: Wish, *, before: bool
) -> EstimateRecord:
    """The estimate of a study.

    Args:
        study: Its name.
        points: What it asks for; what else there is to a run but the number of workers.
        runs: Finished ones; those of one worker count.
        network: What is known of the network.
        wish: What is to be foreseen.
        before: Whether no run with more than one worker has ended.
    """
    series, missing = [], []
    for key, point in _asked(points).items():
        found = _series(key, point, runs, network, wish)
        if isinstance(found, str):
            missing.append(f"{key.strategy}{f' ({key.details})' if key.swept else ''}: {found}")
        else:
            series.append(found)
    made = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return EstimateRecord(
        study=study, made=made, before=before, seed=wish.seed, draws=wish.draws, target=wish.target,
        charge=wish.charge, per_node=network.workers_of_a_node, series=series, missing=missing,
    )  # fmt: skip


def ones_of(point: Point, runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """The runs of one worker that stand for a point's strategy, and those that differ in their batch alone.

    Its own strategy's, else plain training's; none whose cores were shared.
    """
    alone = [run for run in runs if run.result.workers == 1 and not run.result.oversubscribed]
    other = _without_batch(point.swept)
    for strategy in dict.fromkeys((point.strategy, point.implementation, *references())):
        alike = [
            run
            for run in alone
            if run.result.strategy == strategy and _without_batch(run.result.swept) == other
        ]
        own = [run for run in alike if run.result.per_worker_batch == point.train.batch_size]
        if own:
            return own, [run for run in alike if run not in own]
    return [], []


def _without_batch(swept: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in swept.items() if name != BATCH}


def _asked(points: Sequence[Point]) -> dict[Key, Point]:
    """A point of each strategy and each set of other swept values that can have several workers."""
    found: dict[Key, Point] = {}
    for point in points:
        kind = traits(point.strategy)
        if kind.most_workers != 1 and kind.timed:
            found.setdefault(key_of(point.strategy, 1, point.swept), point)
    return found


@dataclass(frozen=True)
class _Way:
    """How so many workers of a strategy exchange, with everything drawn."""

    path: Path
    drawn: Drawn


def _series(
    key: Key, point: Point, runs: Sequence[Run], network: Network, wish: Wish
) -> ForeseenSeries | str:
    own, others = ones_of(point, runs)
    per_worker, words = point.train.batch == "per-worker", 8 if point.train.precision == "float64" else 4
    worker = one_worker(
        own, others=others, per_worker_rule=per_worker, epochs=point.train.epochs, word_bytes=words
    )
    if worker is None:
        return _nothing_to_go_by(point, runs)
    kind, per_node = traits(key.strategy), network.workers_of_a_node
    counts = [1, *(n for n in sorted(set(wish.counts)) if n > 1 and (kind.spans_nodes or n <= per_node))]
    if len(counts) == 1:
        return f"it spans one node, and a node has {per_node} worker{'s' * (per_node > 1)}: see --per-node"
    gpu = any("GPU" in name for run in own for rank in run.ranks for name in rank.devices)
    terms = terms_of(gpu=gpu, xla=point.train.xla, per_node=per_node, storage=network.storage)
    ways: dict[str, _Way] = {}
    found: dict[int, Training] = {}
    for n in counts:
        implementation = kind.implementation(max(n, 2), -(-max(n, 2) // per_node))
        if implementation not in ways:
            names = collectives_of(implementation, point.launch.communication, gpu=gpu)
            path = path_of(network, names, wish.algorithm, max(worker.bucket_bytes))
            if not path.known:
                return f"no latency and bandwidth of {path.collective}: no check has timed it"
            ways[implementation] = _Way(path, drawn(worker, path, terms, seed=wish.seed, draws=wish.draws))
        way = ways[implementation]
        found[n] = training(worker, way.path, terms, way.drawn, n, fabric_of(way.drawn, n, per_node))
    foreseen = [_point(n, found[n], found[1], per_node, wish.charge) for n in counts]
    last = list(ways.values())[-1].path
    worth = [each.workers for each in foreseen if each.efficiency.value >= wish.target]
    low = [each.workers for each in foreseen if each.efficiency.low >= wish.target]
    high = [each.workers for each in foreseen if each.efficiency.high >= wish.target]
    fastest = min(foreseen, key=lambda each: each.training_seconds.value).workers
    ends = (max(worth, default=None), max(low, default=None), max(high, default=None))
    return ForeseenSeries(
        strategy=key.strategy, swept=key.swept, collective=last.collective, algorithm=last.algorithm,
        rule="per-worker" if per_worker else "global", one_worker=list(worker.names),
        training_samples=worker.training_samples, gradient_bytes=worker.gradient_bytes,
        buckets=len(worker.bucket_bytes), points=foreseen,
        worth=ends[0], worth_low=ends[1], worth_high=ends[2], fastest=fastest,
        assumptions=assumptions(worker, last, terms, network),
        sentence=sentence(key.strategy, foreseen, ends, fastest, wish.target),
    )  # fmt: skip


def _nothing_to_go_by(point: Point, runs: Sequence[Run]) -> str:
    shared = [
        run.result.oversubscribed
        for run in runs
        if run.result.workers == 1 and run.result.strategy == point.strategy and run.result.oversubscribed
    ]
    if shared:
        return f"its run of one worker tells no times ({shared[0]}): run it again where it is alone"
    return f"no finished run of one worker with batch_size = {point.train.batch_size} to go by"


def _point(n: int, found: Training, one: Training, per_node: int, charge: float | None) -> ForeseenPoint:
    speed = one.training / found.training
    nodes = -(-n // per_node)
    hours = found.wall / 3600
    epoch = {name: float(np.mean(value)) for name, value in found.parts.items()}
    alone = {name: float(np.mean(value)) for name, value in one.parts.items()}
    losses = {name: epoch[name] - alone[name] / n for name in epoch}
    worst = max(losses, key=lambda name: losses[name])
    return ForeseenPoint(
        workers=n, nodes=nodes, global_batch=found.global_batch, updates=found.updates,
        step_seconds=_interval(found.full.seconds), training_seconds=_interval(found.training),
        wall_seconds=_interval(found.wall), speedup=_interval(speed), efficiency=_interval(speed / n),
        worker_hours=_interval(n * hours), node_hours=_interval(nodes * hours),
        charge=None if charge is None else _interval(charge * nodes * hours),
        parts=epoch, dominant=worst if n > 1 and losses[worst] > 0 else "",
    )  # fmt: skip


def _interval(draws: Any) -> Interval:
    low, value, high = (float(each) for each in np.quantile(draws, [0.025, 0.5, 0.975]))
    return Interval(value=value, low=low, high=high)
