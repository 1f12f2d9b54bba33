"""From the environment of a process to its placement. Nothing else reads launchers' variables."""

import socket

from scalestudy.cluster.horovodrun import horovodrun
from scalestudy.cluster.openmpi import openmpi
from scalestudy.cluster.pbs import pbs
from scalestudy.cluster.placement import Placement
from scalestudy.cluster.pmix import pmix
from scalestudy.cluster.slurm import slurm
from scalestudy.cluster.torchrun import torchrun
from scalestudy.cluster.variables import Environment
from scalestudy.util.errors import UserError


def resolve(environment: Environment) -> Placement:
    """The placement that the environment describes; a process started alone is rank 0 of 1.

    Launchers nest: mpirun in a Slurm job starts its daemons as one task a node, whose Slurm variables
    its processes inherit (so there, all ranks of a node have one SLURM_PROCID). Such a step is the
    outer launcher, and the inner one is right; otherwise all must agree. Horovod's own variables count
    only where no other launcher's are set: they outlive their run easily.

    Args:
        environment: Usually `os.environ`.

    Raises:
        UserError: If a launcher's variables are incomplete, are not numbers, or if two launchers
            disagree about the rank or the size.
    """
    inner = [
        found
        for found in (torchrun(environment), openmpi(environment), pbs(environment))
        if found is not None
    ]
    step = slurm(environment)
    if step is not None and not (inner and _one_task_a_node(step)):
        inner.append(step)
    for other in inner[1:]:
        if (other.rank, other.size) != (inner[0].rank, inner[0].size):
            raise _contradiction(
                f"rank {inner[0].rank} of {inner[0].size} from {inner[0].source}",
                f"rank {other.rank} of {other.size} from {other.source}",
            )
    placement = inner[0] if inner else None
    name = pmix(environment)
    if name is not None:
        if placement is None:
            raise UserError(
                "a launcher that says how many processes there are",
                f"only PMIx, which says rank {name.rank} of job {name.job!r}",
                "Start the workers with srun, or with Open MPI's mpirun.",
            )
        if placement.source != "torchrun" and placement.rank != name.rank:
            raise _contradiction(
                f"rank {placement.rank} from {placement.source}", f"rank {name.rank} from pmix ({name.job})"
            )
    return placement or horovodrun(environment) or _alone()


def _alone() -> Placement:
    return Placement(0, 1, 0, 1, 0, (socket.gethostname(),), "alone")


def _one_task_a_node(step: Placement) -> bool:
    return len(set(step.hosts)) == step.size


def _contradiction(one: str, other: str) -> UserError:
    return UserError(
        "one answer to which rank this process is",
        f"{one}, {other}",
        "Start the workers with one launcher, and clear the other's variables.",
    )
