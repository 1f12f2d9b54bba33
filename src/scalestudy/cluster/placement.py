"""The placement of a process among the processes of its run, independent of the launcher."""

from dataclasses import dataclass

from scalestudy.plugins.traits import Traits
from scalestudy.util.errors import UserError
from scalestudy.util.text import count_noun

DEALING = ("openmpi", "pbs")
"""Launchers that do not provide the number of GPUs of a node, and under which a site's wrapper may show each
process only its own. Whether it is its own is checked once all are connected: see training/own_gpus.py."""


@dataclass(frozen=True)
class Placement:
    """The placement of one process among the processes of its run.

    Attributes:
        rank: Index of this process among all, from 0.
        size: Number of processes.
        local_rank: Index among the processes of this node.
        local_size: Number of processes on this node.
        node_rank: Index of this node; None if the launcher does not provide it.
        hosts: Host of every process, by rank; empty names if the launcher does not provide them.
        source: Source of the placement: "alone", "torchrun", "openmpi", "slurm" or "pbs".
        port: First of the ports reserved for this run on each node, one for each process; None if none are.
        gpus: Number of GPUs granted on this node to all its processes, of which this process may see only its
            own; None if the launcher does not provide it.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    node_rank: int | None
    hosts: tuple[str, ...]
    source: str
    port: int | None = None
    gpus: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.size:
            raise UserError(
                f"a rank from 0 to {self.size - 1}",
                f"rank {self.rank} of {self.size} (from {self.source})",
                "Start all workers of a run with one launcher, and clear stale rank variables.",
            )
        on_this_node = 0 <= self.local_rank < self.local_size <= self.size
        # Ranks of a node are numbered in the order of all ranks.
        if not on_this_node or self.local_rank > self.rank:
            raise UserError(
                "a local rank that matches the rank and the number of processes",
                f"local rank {self.local_rank} of {self.local_size} with rank {self.rank} of {self.size} "
                f"(from {self.source})",
                "Start all workers of a run with one launcher, and clear stale rank variables.",
            )
        if len(self.hosts) != self.size:
            raise UserError(
                f"a host for each of the {self.size} processes",
                f"{len(self.hosts)} hosts (from {self.source})",
                "Check the host list of the launcher.",
            )

    def deals_gpus(self, visible: int) -> bool:
        """Whether the launcher distributes the node's GPUs, so that this process sees only its own."""
        if self.gpus is None:
            return visible == 1 and self.source in DEALING
        # Slurm deals them out with --gpus-per-task or --gpu-bind; without, each task sees all of its node.
        return 0 < visible < self.gpus

    def gpu_place(self, visible: int) -> int:
        """Return the index of this process's GPU among those that it sees."""
        if self.deals_gpus(visible):
            return 0
        return self.local_rank


def check_placement(
    placement: Placement,
    *,
    strategy: Traits,
    workers: int,
    gpus: int | None = None,
) -> None:
    """Refuse a placement that contradicts the point to compute.

    Args:
        placement: Placement from the environment.
        strategy: Traits of the point's strategy.
        workers: Number of workers of the point.
        gpus: Number of GPUs that this process sees; None if the point computes on CPUs.

    Raises:
        UserError: If the strategy needs another number of processes, or if there are fewer GPUs than workers
            on this node.
    """
    needed = strategy.processes_of(workers)
    if placement.size != needed:
        processes = count_noun(needed, "process", "processes")
        action = f"Start one process: {strategy.name} has all workers in it."
        if needed > 1:
            action = "Give the launcher as many tasks as the point has workers."
        raise UserError(
            f"{processes} for {strategy.name} with {workers} workers",
            f"{placement.size} (from {placement.source})",
            action,
        )
    if gpus is not None:
        here = placement.local_size
        if needed == 1:
            here = strategy.workers_at_once(workers)
        _check_gpus(
            placement,
            here=here,
            alone=needed == 1,
            gpus=gpus,
        )


def _check_gpus(
    placement: Placement,
    *,
    here: int,
    alone: bool,
    gpus: int,
) -> None:
    """Refuse fewer GPUs than workers on this node (`here`), if none of them is another process's.

    `alone` says that one process has all workers.
    """
    if gpus >= here:
        return
    enough = placement.gpus is None or placement.gpus >= here
    if not alone and enough and placement.deals_gpus(gpus):
        return
    seen = f"{gpus} visible"
    if placement.gpus is not None:
        seen += f", {placement.gpus} granted on the node"
    raise UserError(
        f"a GPU for each of the {here} workers on this node",
        seen,
        "Request more GPUs per node or for fewer workers per node; of what was granted, a process of "
        "several workers must see all.",
    )
