"""Who am I among the workers: one answer, whatever started this process."""

from dataclasses import dataclass

from scalestudy.study.strategies import Role, Traits
from scalestudy.util.errors import UserError


@dataclass(frozen=True)
class Placement:
    """The place of one process among the processes of its run.

    Attributes:
        rank: Index of this process among all, from 0.
        size: Number of processes.
        local_rank: Index among the processes of this node.
        local_size: Number of processes on this node.
        node_rank: Index of this node, or None where the launcher does not say.
        hosts: Host of every process, in the order of their ranks; empty names where the launcher does
            not say.
        source: Who said so: "alone", "torchrun", "openmpi", "slurm", "pbs" or "horovodrun".
        port: First of the ports that belong to this run on each node, one for each of its processes;
            None where there is none.
        gpus: GPUs granted on this node to all its processes, of which this one may see only its own; None
            where the launcher does not say.
        roles: Role of every process, in the order of their ranks, as their strategy says; empty names none
            but workers.
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
    roles: tuple[Role, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.size:
            raise UserError(
                f"a rank from 0 to {self.size - 1}",
                f"rank {self.rank} of {self.size} (from {self.source})",
                "Start all workers of a run with one launcher, and clear stale rank variables.",
            )
        if not (0 <= self.local_rank < self.local_size <= self.size) or self.local_rank > self.rank:
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

    @property
    def role(self) -> Role:
        """Role of this process."""
        return self.roles[self.rank] if self.roles else "worker"

    @property
    def local_workers(self) -> int:
        """Processes of this node that are workers."""
        if not any(role != "worker" for role in self.roles):
            return self.local_size
        here = self.hosts[self.rank]
        places = zip(self.roles, self.hosts, strict=True)
        return sum(role == "worker" and host == here for role, host in places)

    def deals_gpus(self, visible: int) -> bool:
        """Whether the launcher has dealt the node's GPUs out: of those granted, this process sees its own."""
        if self.gpus is None:
            return visible == 1 and self.source in DEALING
        return 0 < visible < self.gpus

    def gpu_place(self, visible: int) -> int:
        """Place of this process's GPU among those that it sees."""
        return 0 if self.deals_gpus(visible) else self.local_rank


DEALING = ("openmpi", "pbs")
"""Launchers that do not say how many GPUs a node has, and under which a site's wrapper may show each process
its own. That it is its own is seen once all have met: see training/own_gpus.py."""


def check_placement(placement: Placement, *, strategy: Traits, workers: int, gpus: int | None = None) -> None:
    """Refuse a placement that contradicts the point it is to compute.

    Args:
        placement: What the environment says.
        strategy: What the strategy of the point is.
        workers: Workers of the point.
        gpus: GPUs of this node, or None when the point computes on CPUs.

    Raises:
        UserError: If the number of processes is not what the strategy needs, or if there are fewer
            GPUs than workers on this node.
    """
    needed = strategy.processes_of(workers)
    if placement.size != needed:
        raise UserError(
            f"{needed} process{'es' if needed > 1 else ''} for {strategy.name} with {workers} workers",
            f"{placement.size} (from {placement.source})",
            "Give the launcher as many tasks as the point has workers."
            if needed > 1
            else f"Start one process: {strategy.name} has all workers in it.",
        )
    here = strategy.workers_at_once(workers) if needed == 1 else placement.local_workers
    if gpus is None or gpus >= here:
        return
    enough = placement.gpus is None or placement.gpus >= here
    if not (needed > 1 and enough and placement.deals_gpus(gpus)):
        raise UserError(
            f"a GPU for each of the {here} workers on this node",
            f"{gpus} visible" + ("" if placement.gpus is None else f", {placement.gpus} granted on the node"),
            "Request more GPUs per node or for fewer workers per node; of what was granted, a process of "
            "several workers must see all.",
        )
