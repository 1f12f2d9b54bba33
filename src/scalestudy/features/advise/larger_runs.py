"""Predict the times of runs with many workers from one-worker runs and the network."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalestudy.analysis.runs import Key, Run, key_of
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.config.point import Point, without_repeats
from scalestudy.features.advise.network import (
    Draws,
    KnownLink,
    KnownNetwork,
    Route,
    Uncertain,
    collectives_of,
    network_of,
    route_of,
)
from scalestudy.features.advise.step_model import (
    BACKWARD,
    FEWEST_CALLS,
    JITTER_UNKNOWN,
    OneWorker,
    PredictedTraining,
    StepModel,
    Unmeasured,
    one_worker,
    unmeasured_of,
)
from scalestudy.plugins.strategies import references, traits
from scalestudy.store.records import StepRecord
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util import units

MOST = 4096
"""Maximum number of workers considered by default."""
BATCH = "train.batch_size"
LOSSES = {
    "computing": "contention of a node's workers",
    "fixed": "the fixed cost of steps",
    "input": "waiting for input",
    "exchange": "communication that does not overlap with computing",
    "slowest": "waiting for the slowest worker",
    "uneven": "uneven slices of the batch",
}
"""Causes of imperfect scaling, by part of a step."""


@dataclass(frozen=True)
class LargerRun:
    """A predicted training on some number of workers; ranges hold 95 % of the draws.

    Attributes:
        nodes: Number of nodes, filled one after another.
        seconds: Time from start to result.
        training_seconds: Time without start-up, evaluation and saving.
        times_faster: Ratio of one worker's time from start to result to this run's.
        speedup: Ratio of the training times.
        global_batch: Samples in a full step.
        updates: Updates in all epochs.
        parts: Seconds of an epoch by part, as the mean over the draws; see `step_model.PARTS`.
        lost_to: Part in `LOSSES` that costs the most compared with ideal scaling; "" for none.
        cost: Unit-hours. Set with `cost_efficiency` once the runs are priced.
    """

    workers: int
    nodes: int
    seconds: Estimate
    training_seconds: Estimate
    times_faster: Estimate
    speedup: Estimate
    global_batch: int
    updates: int
    parts: dict[str, float]
    lost_to: str
    cost: Estimate = NOTHING
    cost_efficiency: Estimate = NOTHING


@dataclass(frozen=True)
class LargerRuns:
    """The predicted runs of a strategy with one set of other swept values.

    Attributes:
        key: Key of its one-worker row.
        collective: Collective, as named by checks.
        algorithm: Algorithm of its all-reduces.
        per_worker_rule: Whether every worker takes its own batch.
        runs: Runs in ascending order of workers, from one.
        assumptions: Assumptions of the prediction: name, value with its range, source.
    """

    key: Key
    collective: str
    algorithm: str
    per_worker_rule: bool
    training_samples: int
    per_node: int
    runs: tuple[LargerRun, ...]
    assumptions: tuple[tuple[str, str, str], ...]


def read_larger_runs(
    folder: StudyFolder, runs: Sequence[Run], texts: Sequence[str], most: int | None
) -> tuple[list[LargerRuns], list[str]]:
    """Call `larger_runs` with the points and step times of a study folder; `texts` are `--network` values.

    Raises:
        UserError: The network cannot be read.
    """
    network = network_of(texts)
    steps = {
        run.result.name: record
        for run in runs
        if run.result.workers == 1 and run.folder
        for record in RunFolder(folder.path / run.folder).steps()
    }
    return larger_runs(folder.points(), runs, network, most=most, steps=steps)


def larger_runs(
    points: Sequence[Point],
    runs: Sequence[Run],
    network: KnownNetwork,
    *,
    most: int | None = None,
    steps: Mapping[str, StepRecord] | None = None,
) -> tuple[list[LargerRuns], list[str]]:
    """Predict larger runs of a study, and say why some strategies have no prediction.

    Args:
        points: Points of the study, which give all settings of a run except the number of workers.
        runs: Finished runs; predictions use those of one worker.
        network: What is known about the network.
        most: Maximum number of workers. If None, the global batch if the study fixes it, else `MOST`.
        steps: Step times of one-worker runs, by the run's name.
    """
    wanted: dict[Key, Point] = {}
    for point in points:
        kind = traits(point.strategy)
        if kind.most_workers != 1 and kind.has_speed_up:
            wanted.setdefault(key_of(point.strategy, 1, point.swept), point)
    expected, missing = [], []
    for key, point in wanted.items():
        measured = {
            run.result.workers
            for run in runs
            if key_of(run.result.strategy, 1, run.result.swept) == key and not run.result.oversubscribed
        }
        # With more workers than the global batch has samples, some workers would have none.
        end = most or (point.train.batch_size if point.train.batch == "global" else MOST)
        series = _series(key, point, runs, network, counts_of(network, end, measured), steps or {})
        if isinstance(series, str):
            missing.append(f"{key.series_label}: {series}")
        else:
            expected.append(series)
    return expected, missing


def counts_of(network: KnownNetwork, most: int, measured: set[int]) -> list[int]:
    """Return powers of two within a node, powers of two of full nodes beyond it, and the measured numbers."""
    per_node = network.workers_per_node
    powers = [2**power for power in range(most.bit_length())]
    counts = {count for count in powers if count < per_node} | {per_node * count for count in powers} | {1}
    return sorted({count for count in counts if count <= most} | measured)


def one_worker_runs(point: Point, runs: Sequence[Run]) -> list[Run]:
    """Return the one-worker runs that represent a point: of its own strategy, else of plain training.

    Oversubscribed runs are excluded.
    """

    def but_batch(swept: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in without_repeats(swept).items() if name != BATCH}

    alone = [
        run
        for run in runs
        if run.result.workers == 1
        and not run.result.oversubscribed
        and run.result.engine in (None, point.engine)
        and run.result.per_worker_batch == point.train.step_batch
        and but_batch(run.result.swept) == but_batch(point.swept)
    ]
    for strategy in dict.fromkeys((point.strategy, point.implementation, *references(point.engine))):
        alike = [run for run in alone if run.result.strategy == strategy]
        if alike:
            return alike
    return []


def _series(
    key: Key,
    point: Point,
    runs: Sequence[Run],
    network: KnownNetwork,
    counts: Sequence[int],
    steps: Mapping[str, StepRecord],
) -> LargerRuns | str:
    """Return the prediction of a strategy, or why there is none."""
    if point.train.local_steps > 1:
        return "local SGD exchanges weights between steps, of which the model of a step knows nothing"
    alone = one_worker_runs(point, runs)
    worker = one_worker(
        alone,
        per_worker_rule=point.train.batch == "per-worker",
        epochs=point.train.epochs,
        steps=steps,
        word_bytes=8 if point.train.precision == "float64" else 4,
    )
    if worker is None:
        return f"no run of one worker with batch_size = {point.train.batch_size} has times that count"
    kind, per_node = traits(key.strategy), network.workers_per_node
    counts = [count for count in counts if kind.spans_nodes or count <= per_node]
    if len(counts) == 1:
        return f"it spans one node, and a node has {per_node} worker{'s' * (per_node > 1)}: add per_node=N"
    gpu = any("GPU" in name for run in alone for rank in run.ranks for name in rank.devices)
    unmeasured = unmeasured_of(gpu=gpu, xla=point.train.xla, per_node=per_node)
    models: dict[str, tuple[Route, StepModel]] = {}
    trainings: dict[int, PredictedTraining] = {}
    for count in counts:
        implementation = kind.implementation(max(count, 2), -(-max(count, 2) // per_node))
        if implementation not in models:
            names = collectives_of(implementation, point.launch.communication, gpu=gpu)
            route = route_of(network, names, max(worker.bucket_bytes))
            if not route.known:
                return f"no latency and bandwidth of {route.collective}: no check has timed it"
            models[implementation] = route, StepModel(worker, route, unmeasured)
        route, model = models[implementation]
        trainings[count] = model.training(count, per_node)
    return LargerRuns(
        key,
        route.collective,
        route.algorithm,
        worker.per_worker_rule,
        worker.training_samples,
        per_node,
        tuple(_run(count, trainings[count], trainings[1], per_node) for count in counts),
        tuple(_assumptions(worker, route, unmeasured, network)),
    )


def _run(workers: int, trained: PredictedTraining, one: PredictedTraining, per_node: int) -> LargerRun:
    epoch = {part: float(np.mean(value)) for part, value in trained.parts.items()}
    losses = {part: epoch[part] - float(np.mean(one.parts[part])) / workers for part in LOSSES}
    worst = max(losses, key=lambda part: losses[part])
    return LargerRun(
        workers,
        -(-workers // per_node),
        _range(trained.wall),
        _range(trained.seconds),
        _range(one.wall / trained.wall),
        _range(one.seconds / trained.seconds),
        trained.global_batch,
        trained.updates,
        epoch,
        worst if workers > 1 and losses[worst] > 0 else "",
    )


def _range(draws: Draws) -> Estimate:
    low, value, high = (float(end) for end in np.quantile(draws, [0.025, 0.5, 0.975]))
    return Estimate(value, low, high)


def _assumptions(
    worker: OneWorker, route: Route, unmeasured: Unmeasured, network: KnownNetwork
) -> Iterator[tuple[str, str, str]]:
    """Yield the assumptions of a prediction: each number with its range and source."""
    runs = f"measured in {worker.runs} run{'s' * (worker.runs > 1)} of one worker"
    epoch, buckets = worker.epoch_seconds, len(worker.bucket_bytes)
    yield "one worker's epoch", f"{epoch.value:.3g} s ({epoch.low:.3g}–{epoch.high:.3g})", runs
    share = f"{100 * worker.input_share:.1f} % of it, the same for a sample at any number of workers"
    yield "waiting for input", share, f"{runs}; the file system is taken to have no limit"
    yield "fixed cost of a step", f"{_share(unmeasured.fixed)} of one worker's step", "not measured"
    value = f"standard deviation {_share(unmeasured.differences)} of a step; all wait for the slowest"
    yield "differences between workers", value, "not measured by one worker"
    if worker.jitter is None:
        value, source = f"standard deviation {_share(JITTER_UNKNOWN)}", f"fewer than {FEWEST_CALLS} calls"
        yield "steps of one worker", value, f"{source} were timed"
    else:
        slowest = 100 * worker.jitter.slowest(8)
        calls = f"{sum(worker.jitter.counts):,} calls of one worker, but for its first epoch's warm-up"
        yield "steps of one worker", f"the slowest of 8 takes {slowest:.2g} % longer", calls
    yield "another run", f"within a factor of {worker.repeats.high:.2f}", runs
    value = f"{_share(unmeasured.overhead)} of the computing whenever workers double"
    yield "overhead", value, "what published runs lost beside network and stragglers"
    gradients = f"{units.size(sum(worker.bucket_bytes))} in {buckets} bucket{'s' * (buckets != 1)}"
    yield "gradients", gradients, "as the run recorded them"
    value = f"{_share(BACKWARD)} of the computing; hides {_share(unmeasured.hidden)} of what it could"
    yield "back-propagation", value, "a layer's backward pass takes about twice its forward pass"
    links = ("between nodes", route.across, "within a node"), ("within a node", route.within, "between nodes")
    for name, link, other in links:
        yield (name, _link(link), link.source) if link else (name, f"as {other}", "not known")
    value = f"{route.algorithm} ({route.collective}), {_share(unmeasured.in_training)} of what it takes alone"
    yield "all-reduce", value, "what this collective does with large messages, while cores are busy"
    if unmeasured.contention.high:
        value = f"workers of a node slow each other by {_share(unmeasured.contention)}"
        yield "contention", value, "not measured: `scalestudy diagnose` does"
    stated = network.per_node or network.measured
    source = "stated, or as the check had them" if stated else "not given: add per_node=N"
    yield "workers of a node", str(network.workers_per_node), source
    value = f"{units.duration(worker.other_seconds)}, whatever the number of workers, and evaluation"
    source = "measured on one worker; thousands that start from one file system take more"
    yield "beside training", value, source


def _link(link: KnownLink) -> str:
    rate, unit, length = link.bandwidth, *(("µs", 1e-6) if link.small.value < 1e-3 else ("ms", 1e-3))
    value, low, high = (end / length for end in (link.small.value, link.small.low, link.small.high))
    over = f" for the smallest message over {link.ranks} ranks" if link.ranks else " a step"
    return (
        f"{rate.value / 1e9:.3g} GB/s ({rate.low / 1e9:.3g}–{rate.high / 1e9:.3g}), "
        f"{value:.3g} {unit} ({low:.3g}–{high:.3g}){over}"
    )


def _share(share: Uncertain) -> str:
    if share.low == share.high:
        return f"{100 * share.value:.1f} %"
    return f"{100 * share.low:.3g} to {100 * share.high:.3g} %"
