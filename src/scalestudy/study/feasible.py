"""Which points can run on a machine, and which run with timings that say nothing."""

from dataclasses import dataclass

from scalestudy.study.lines import KeyLines
from scalestudy.study.point import Point
from scalestudy.util.errors import UserError

TF32_SINCE = (8, 0)
"""Compute capability of Ampere, the first with TensorFloat-32 (NVIDIA A100 white paper, 2020)."""
TF32_NEEDS = 'GPUs from Ampere on (compute capability 8.0 or higher) for precision = "tf32"'


def without_tf32(precision: str, device: str, capability: tuple[int, int] | None) -> str | None:
    """What is there instead, where `precision` is "tf32" and the device is known to have none; else None.

    Args:
        precision: Of a point.
        device: "cpu" or "gpu".
        capability: Lowest compute capability of the GPUs; None where it is not known.
    """
    if precision != "tf32":
        return None
    if device == "cpu":
        return "a CPU"
    if capability is None or capability >= TF32_SINCE:
        return None
    return f"a GPU of compute capability {capability[0]}.{capability[1]}"


LARGEST_ROOT = 10


@dataclass(frozen=True)
class Machine:
    """What a study runs on.

    Attributes:
        gpus: GPUs of a node.
        cores: Cores of a node.
        cluster: Whether workers may spread over as many nodes as they need.
        tasks_per_node: Most workers of a node of a cluster, but no more than GPUs where they compute on
            those; when None one for each GPU, or as many as the cores hold.
        capability: Lowest compute capability of its GPUs, (7, 0); None where it is not known.
        node_gpus: GPUs that share the cores, if they are more than may be used; None for `gpus`.
    """

    gpus: int
    cores: int
    cluster: bool = False
    tasks_per_node: int | None = None
    capability: tuple[int, int] | None = None
    node_gpus: int | None = None

    def device(self, asked: str) -> str:
        """What workers compute on, "cpu" or "gpu", for the `launch.device` that is asked for."""
        return "cpu" if asked == "cpu" or (asked == "auto" and self.gpus == 0) else "gpu"

    def cpus_per_worker(self, device: str = "auto") -> int:
        """Cores of a worker where the study does not say: one, or on GPUs one GPU's share of the node's."""
        if self.device(device) == "cpu" or not self.gpus:
            return 1
        return max(1, self.cores // max(self.gpus, self.node_gpus or 0))

    def nodes(self, workers: int, cpus_per_worker: int, device: str = "auto") -> int:
        """Nodes that so many workers need."""
        return -(-workers // self.workers_per_node(cpus_per_worker, device)) if self.cluster else 1

    def workers_per_node(self, cpus_per_worker: int, device: str = "auto") -> int:
        """Most workers of a node of a cluster."""
        gpus = 0 if device == "cpu" else self.gpus
        most = gpus or max(1, self.cores // cpus_per_worker)
        if self.tasks_per_node is None:
            return most
        return min(self.tasks_per_node, gpus) if gpus else self.tasks_per_node


def refuse_impossible(point: Point, place: KeyLines, machine: Machine) -> None:
    """Refuse a point that cannot run at all.

    Raises:
        UserError: Naming the line and what would do.
    """
    _refuse_small_batch(point, place)
    _refuse_wrong_fold(point, place)
    _refuse_two_warmups(point, place)
    _refuse_square_root_too_far(point, place)
    _refuse_xla_with_collectives(point, place)
    _refuse_mirrored_over_nodes(point, place, machine)
    _refuse_missing_gpus(point, place, machine)
    _refuse_missing_tf32(point, place, machine)
    _refuse_shared_cores(point, place, machine)


def oversubscription(point: Point, machine: Machine) -> str | None:
    """Why the workers of a point share cores, which makes its timing worthless; None if they do not."""
    here = 1 if point.traits.one_device else _of_one_node(point, machine)
    each = point.launch.cpus_per_worker
    if here * each <= machine.cores:
        return None
    workers = "1 worker" if here == 1 else f"{here} workers"
    if not point.traits.timed:
        workers = "1 process"
    return f"{workers} of {_cores(each)} on {_cores(machine.cores)}"


def _of_one_node(point: Point, machine: Machine) -> int:
    if not point.traits.spans_nodes:
        return point.workers
    return -(-point.workers // _nodes(point, machine))


def _nodes(point: Point, machine: Machine) -> int:
    return machine.nodes(point.workers, point.launch.cpus_per_worker, point.launch.device)


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def _refuse_small_batch(point: Point, place: KeyLines) -> None:
    if point.global_batch >= point.workers:
        return
    key = "train.batch_size"
    raise UserError(
        f"a global batch of at least one sample for each of the {point.workers} workers",
        f"batch_size = {point.global_batch}{place.of(f'sweep.{key}', key, 'train.batch', 'sweep.workers')}",
        "Raise batch_size, or take fewer workers.",
    )


def _refuse_wrong_fold(point: Point, place: KeyLines) -> None:
    data = point.data
    if data.folds is None and data.fold == 0:
        return
    where = place.of("sweep.data.fold", "data.fold", "sweep.data.folds", "data.folds")
    if data.folds is None:
        raise UserError(
            "folds beside fold", f"fold = {data.fold} alone{where}", "Add folds, such as `folds = 5`."
        )
    if data.validation is not None:
        raise UserError(
            "one of validation and folds",
            f"both{where}",
            "Remove one: a fold is what is held out.",
        )
    if data.fold >= data.folds:
        raise UserError(
            f"a fold of 0 to {data.folds - 1}, since folds = {data.folds}",
            f"fold = {data.fold}{where}",
            "Count folds from 0.",
        )


def _refuse_two_warmups(point: Point, place: KeyLines) -> None:
    if not (point.train.warmup_steps and point.train.warmup_epochs):
        return
    names = ("sweep.train.warmup_epochs", "sweep.train.warmup_steps", "train.warmup_epochs")
    raise UserError(
        "one of train.warmup_steps and train.warmup_epochs",
        f"both, for point {point.name}{place.of(*names)}",
        "Remove one of the two.",
    )


def _refuse_square_root_too_far(point: Point, place: KeyLines) -> None:
    """From ten reference batches on, Adam's first beta, 1 − κ(1 − 0.9), is not positive (Malladi 2022)."""
    adaptive = point.train.optimizer in ("adam", "adamw", "lamb")
    if not (adaptive and point.train.learning_rate_scaling == "sqrt" and point.batch_ratio >= LARGEST_ROOT):
        return
    key = "train.learning_rate_scaling"
    raise UserError(
        f'a global batch under {LARGEST_ROOT} reference batches for learning_rate_scaling = "sqrt" with '
        f"{point.train.optimizer}",
        f"{point.batch_ratio:g} reference batches at {point.workers} workers"
        f"{place.of(f'sweep.{key}', key, 'sweep.workers')}",
        'Use "linear", fewer workers, or a larger reference_batch.',
    )


def _refuse_xla_with_collectives(point: Point, place: KeyLines) -> None:
    if not (point.train.xla and point.train.sync_batch_norm and not point.traits.one_device):
        return
    names = ("train.sync_batch_norm", "sweep.train.sync_batch_norm", "train.xla", "sweep.train.xla")
    raise UserError(
        f"train.xla without train.sync_batch_norm under {point.implementation}, since synchronised batch "
        "normalisation communicates inside the part that XLA would compile",
        f"both true for point {point.name}{place.of(*names)}",
        'Switch one of the two off, or take "virtual" or "single", which need no communication.',
    )


def _refuse_missing_gpus(point: Point, place: KeyLines, machine: Machine) -> None:
    if machine.device(point.launch.device) == "cpu":
        return
    needed = 1 if point.traits.one_device else _of_one_node(point, machine)
    if needed <= machine.gpus:
        return
    noun = "worker" if point.workers == 1 else "workers"
    node = " a node" if machine.cluster else ""
    available = "no GPU" if machine.gpus == 0 else f"{machine.gpus} GPU{'s' * (machine.gpus > 1)}{node}"
    names = ("sweep.workers", "launch.device", "sweep.launch.device", "sweep.strategy")
    raise UserError(
        "a GPU for every worker",
        f"{point.workers} {noun} on {available} for point {point.name}{place.of(*names)}",
        'Take fewer workers, set launch.device = "cpu", or take "virtual", which computes many workers on '
        "one device.",
    )


def _refuse_missing_tf32(point: Point, place: KeyLines, machine: Machine) -> None:
    device = machine.device(point.launch.device)
    lacking = without_tf32(point.train.precision, device, machine.capability)
    if lacking is None:
        return
    names = ("sweep.train.precision", "train.precision")
    raise UserError(
        TF32_NEEDS, f"{lacking} for point {point.name}{place.of(*names)}", 'Set precision = "float32".'
    )


def _refuse_mirrored_over_nodes(point: Point, place: KeyLines, machine: Machine) -> None:
    nodes = _nodes(point, machine)
    if point.traits.spans_nodes or point.traits.one_device or nodes == 1:
        return
    raise UserError(
        f"workers that fit on one node for {point.implementation}",
        f"{point.workers} workers, which need {nodes} nodes, for point {point.name}"
        f"{place.of('sweep.workers', 'sweep.strategy')}",
        'Take fewer workers, or "native" or "multiworker", which span nodes.',
    )


def _refuse_shared_cores(point: Point, place: KeyLines, machine: Machine) -> None:
    """A cluster grants no core twice, so there is no oversubscribed run there."""
    reason = oversubscription(point, machine) if machine.cluster else None
    if reason is None:
        return
    names = ("launch.cpus_per_worker", "sweep.launch.cpus_per_worker", "sweep.workers", "launch.site")
    raise UserError(
        f"workers that fit on the {_cores(machine.cores)} of a node",
        f"{reason} for point {point.name}{place.of(*names)}",
        "Lower launch.cpus_per_worker, or tasks_per_node in the site profile.",
    )
