"""Which points can run on a machine, and which of them have unusable times."""

import math
from collections.abc import Iterator
from itertools import chain

from scalestudy.config.catalog import is_ours
from scalestudy.config.file import Study
from scalestudy.config.machine import Machine
from scalestudy.config.point import Point
from scalestudy.plugins.engines import engine_traits
from scalestudy.plugins.strategies import traits, working_names
from scalestudy.util.errors import UserError
from scalestudy.util.text import plural

_Obstacle = tuple[str, str, str, tuple[str, ...]]
"""Expected, received, action, and the keys whose line a message gives, the likeliest first."""
TF32_SINCE = (8, 0)
"""Compute capability of Ampere, the first with TensorFloat-32 (NVIDIA A100 white paper, 2020)."""
SMALLEST_COMPILED = 2**20
"""Smallest bucket in bytes that PyTorch's `DDPOptimizer` takes: the first bucket of its default sizes."""
TF32_NEEDS = (
    'GPUs from Ampere on (compute capability 8.0 or higher) for precision = "tf32"'
)


def without_tf32(
    precision: str,
    device: str,
    capability: tuple[int, int] | None,
) -> str | None:
    """The device, in words, if `precision` is "tf32" and a "cpu" or "gpu" is known to lack it; else None."""
    if precision == "tf32" and device == "cpu":
        return "a CPU"
    if precision != "tf32" or capability is None or capability >= TF32_SINCE:
        return None
    return f"a GPU of compute capability {capability[0]}.{capability[1]}"


def refuse_impossible(point: Point, study: Study, machine: Machine) -> None:
    """Refuse a point that cannot run; raises UserError with the line and a remedy."""
    # Lazily: only the first obstacle is looked for, and what the user wrote comes before the machine.
    obstacles = chain(
        _of_settings(point, study),
        _of_training(point),
        _of_exchange(point),
        _of_machine(point, machine),
    )
    for expected, received, action, keys in obstacles:
        raise UserError(expected, f"{received}{study.place.of(*keys)}", action)


def oversubscription(point: Point, machine: Machine) -> str | None:
    """Why the workers of a point share cores, which makes its times unusable; None if they do not."""
    here = _of_one_node(point, machine)
    cores = point.launch.cpus_per_worker
    if here * cores <= machine.cores:
        return None
    noun = plural("worker", here)
    # All workers are computed by one process.
    if not point.traits.timed:
        noun = "process"
    return f"{here} {noun} of {_cores(cores)} on {_cores(machine.cores)}"


def _of_one_node(point: Point, machine: Machine) -> int:
    """Return how many workers compute at once on a node."""
    if point.traits.one_device:
        return 1
    if not point.traits.spans_nodes:
        return point.workers
    return math.ceil(point.workers / _nodes(point, machine))


def _nodes(point: Point, machine: Machine) -> int:
    launch = point.launch
    return machine.nodes(
        point.workers,
        launch.cpus_per_worker,
        launch.device,
        launch.workers_per_node,
    )


def _cores(count: int) -> str:
    return f"{count} {plural('core', count)}"


def _of_settings(point: Point, study: Study) -> Iterator[_Obstacle]:
    accumulate = point.train.accumulate
    if point.global_batch < point.workers * accumulate:
        parts, fewer = "", "use fewer workers"
        if accumulate > 1:
            parts = f"{accumulate} micro-batches of each of the "
            fewer = "use fewer workers or micro-batches"
        yield (
            f"a global batch of at least one sample for each of the {parts}{point.workers} workers",
            f"batch_size = {point.global_batch}",
            f"Raise batch_size, or {fewer}.",
            ("train.batch_size", "train.batch", "train.accumulate", "sweep.workers"),
        )
    weights = point.train.weights
    # A task file decides in its own code; see tasks/load.py.
    fixed_model = is_ours(point.task) and "weights" not in study.defaults.train
    if weights is not None and fixed_model:
        yield (
            "a task whose model takes initial weights, for train.weights",
            f'weights = "{weights}" for {point.task}',
            'Remove weights, or name another task, such as "resnet50" or "keras:MODEL".',
            ("train.weights",),
        )


def _of_training(point: Point) -> Iterator[_Obstacle]:
    train = point.train
    if train.compile and not engine_traits(point.engine).compiles:
        yield (
            f"compile = false under {point.engine}, which compiles its steps by itself",
            f"compile = true for point {point.name}",
            "Remove it, or take a strategy of PyTorch.",
            ("train.compile", "engine"),
        )
    if train.find_unused_parameters and not engine_traits(point.engine).compiles:
        yield (
            f"find_unused_parameters = false under {point.engine}, which needs no such search",
            f"find_unused_parameters = true for point {point.name}",
            "Remove it, or take a strategy of PyTorch.",
            ("train.find_unused_parameters", "engine"),
        )
    offered = engine_traits(point.engine).optimizers
    # An engine that lists no optimizers takes all of them.
    if offered and train.optimizer not in offered:
        yield (
            f"an optimizer of {point.engine}, one of {', '.join(offered)}, for point {point.name}",
            f'optimizer = "{train.optimizer}"',
            "Take one of these, a strategy of TensorFlow, or a task with its own optimizer(model, rate).",
            ("train.optimizer", "sweep.strategy"),
        )
    if train.xla and not point.traits.xla:
        yield (
            f"xla = false under {point.implementation}, whose steps XLA does not compile",
            f"xla = true for point {point.name}",
            "Remove it, or use another strategy.",
            ("train.xla", "sweep.strategy"),
        )
    if train.xla and train.sync_batch_norm and not point.traits.one_device:
        yield (
            f"train.xla without train.sync_batch_norm under {point.implementation}, since synchronised batch "
            "normalisation communicates inside the part that XLA would compile",
            f"both true for point {point.name}",
            'Switch one of the two off, or take "virtual" or "single", which need no communication.',
            ("train.sync_batch_norm", "train.xla"),
        )


def _of_exchange(point: Point) -> Iterator[_Obstacle]:
    """Options that a strategy lacks, or that contradict each other. A strategy of one worker has none."""
    kind, train, wire = point.traits, point.train, point.launch.compression
    if train.accumulate > 1 and train.sync_batch_norm:
        yield _contradiction(
            point,
            "train.accumulate",
            "train.sync_batch_norm",
            "normalises each micro-batch by itself",
        )
    # One worker exchanges nothing, so nothing can be lacking.
    if kind.most_workers == 1:
        return
    if not kind.synchronous and point.workers > 1:
        yield from _of_asynchronous(point)
    cap = point.launch.bucket_bytes
    sums = kind.spans_nodes and point.workers > 1
    if train.compile and sums and cap is not None and cap < SMALLEST_COMPILED:
        yield (
            "buckets of at least 1 MiB, as torch.compile requires",
            f'launch.bucket_size = "{point.launch.bucket_size}" with compile = true for point {point.name}',
            "Raise bucket_size, or remove it.",
            ("launch.bucket_size", "train.compile"),
        )
    if wire != "none" and wire not in kind.compressions:
        others = []
        for name in working_names():
            other = traits(name)
            if wire in other.compressions and other.engine == point.engine:
                others.append(f'"{name}"')
        action = "Remove launch.compression."
        if others:
            action = f"Use {' or '.join(others)}, or remove launch.compression."
        yield (
            f"a strategy that supports launch.compression = {wire}",
            f"{point.implementation}, for point {point.name}",
            action,
            ("launch.compression", "sweep.strategy"),
        )
    if wire != "none" and train.precision == "float64":
        yield _contradiction(
            point,
            "launch.compression",
            "train.precision",
            "rounds gradients to 16 bits",
        )


def _of_asynchronous(point: Point) -> Iterator[_Obstacle]:
    """Options for which workers need a common step."""
    train = point.train
    needs = {
        "train.sync_batch_norm": (train.sync_batch_norm, "true"),
        "train.precision": (train.precision == "mixed_float16", '"mixed_float16"'),
        "train.deterministic": (train.deterministic is True, "true"),
    }
    for key, (given, value) in needs.items():
        if given:
            yield (
                f"{key} other than {value} under {point.implementation}, whose workers share no step",
                f"{value} for point {point.name}",
                f"Remove {key}, or take a synchronous strategy.",
                (key, "sweep.strategy"),
            )


def _contradiction(
    point: Point,
    key: str,
    other: str,
    why: str,
) -> _Obstacle:
    return (
        f"{key} without {other}, since it {why}",
        f"both for point {point.name}",
        f"Remove {key} or {other}.",
        (other, key),
    )


def _of_machine(point: Point, machine: Machine) -> Iterator[_Obstacle]:
    kind, nodes = point.traits, _nodes(point, machine)
    of_point = f"for point {point.name}"
    if not (kind.spans_nodes or kind.one_device) and nodes > 1:
        yield (
            f"workers that fit on one node for {point.implementation}",
            f"{point.workers} workers, which need {nodes} nodes, {of_point}",
            'Take fewer workers, or "native" or "multiworker", which span nodes.',
            ("sweep.workers", "sweep.strategy"),
        )
    device = machine.device(point.launch.device)
    # With workers on several nodes, each node needs GPUs for its own only.
    needed = min(point.workers, _of_one_node(point, machine))
    if device == "gpu" and needed > machine.gpus:
        available = "no GPU"
        if machine.gpus:
            available = f"{machine.gpus} {plural('GPU', machine.gpus)}"
            if machine.cluster:
                available += " a node"
        workers = f"{point.workers} {plural('worker', point.workers)}"
        yield (
            "a GPU for every worker",
            f"{workers} on {available} {of_point}",
            'Take fewer workers, set launch.device = "cpu", or take "virtual", which computes many workers '
            "on one device.",
            ("sweep.workers", "launch.device", "sweep.strategy"),
        )
    if lacking := without_tf32(point.train.precision, device, machine.capability):
        yield (
            TF32_NEEDS,
            f"{lacking} {of_point}",
            'Set precision = "float32".',
            ("train.precision",),
        )
    # A cluster grants no core twice, so its runs cannot be oversubscribed.
    if machine.cluster and (reason := oversubscription(point, machine)):
        yield (
            f"workers that fit on the {_cores(machine.cores)} of a node",
            f"{reason} {of_point}",
            "Lower launch.cpus_per_worker, or tasks_per_node in the site profile.",
            ("launch.cpus_per_worker", "sweep.workers", "launch.site"),
        )
