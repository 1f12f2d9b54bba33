"""A process that mpiexec started in a job of PBS: HPE's PALS, MPICH's Hydra, Intel MPI.

PBS itself starts one process, the job script, and names the job's nodes; which rank a process is, the
launcher says: PALS by PALS_* and PMI_*, Hydra by PMI_* and MPI_LOCAL*.
"""

import socket
from collections.abc import Sequence
from pathlib import Path

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.variables import Environment, Variables, job_port
from scalestudy.util.errors import UserError

RANK = ("PMI_RANK", "PALS_RANKID")
SIZE = ("PMI_SIZE",)
LOCAL_RANK = ("PMI_LOCAL_RANK", "PALS_LOCAL_RANKID", "MPI_LOCALRANKID")
LOCAL_SIZE = ("PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE", "MPI_LOCALNRANKS")
NODES = "SCALESTUDY_NODES"
"""The job's nodes, which our job scripts read from PBS's file: only the job's first node has that."""


def pbs(environment: Environment) -> Placement | None:
    """The placement of a rank in a job of PBS; None outside of one and in the job script itself.

    Ranks are in blocks: the first node is filled first, and only the last may have fewer than the others.

    Raises:
        UserError: If the variables are incomplete or contradict each other, or if the ranks of this node
            are no such block of the job's nodes.
    """
    if "PBS_JOBID" not in environment or not any(name in environment for name in RANK):
        return None
    rank, size = _number(environment, RANK), _number(environment, SIZE)
    local_rank, local_size = _number(environment, LOCAL_RANK), _number(environment, LOCAL_SIZE)
    port = job_port(environment)
    if local_size == size:
        return Placement(rank, size, local_rank, local_size, 0, ("localhost",) * size, "pbs", port)
    nodes = pbs_nodes(environment)
    if not nodes:
        raise UserError(
            f"the job's nodes in {NODES} or in the file that PBS_NODEFILE names",
            "neither",
            "Start the workers from a job script of scalestudy, or export both to all ranks.",
        )
    node = _node(nodes, rank, size, local_rank, local_size)
    block = _block(node, rank - local_rank, local_size)
    hosts = tuple(nodes[each // block] for each in range(size))
    return Placement(rank, size, local_rank, local_size, node, hosts, "pbs", port)


def pbs_nodes(environment: Environment) -> Sequence[str]:
    """The nodes of a job, each once, in PBS's order; none outside of a job, or where nobody says."""
    if "PBS_JOBID" not in environment:
        return ()
    told = environment.get(NODES, "").split(",")
    if not any(told) and environment.get("PBS_NODEFILE"):
        try:
            told = Path(environment["PBS_NODEFILE"]).read_text().split()
        except OSError:
            return ()
    return list(dict.fromkeys(each for each in told if each))


def _number(environment: Environment, names: Sequence[str]) -> int:
    """The number that one or several variables tell alike."""
    variables = Variables(environment, "pbs")
    told = {name: variables.number(name) for name in names if name in environment}
    if not told:
        return variables.number(names[0])
    if len(set(told.values())) > 1:
        raise UserError(
            "one answer to which rank this process is",
            ", ".join(f"{name}={value}" for name, value in told.items()) + " (from pbs)",
            "Start the workers with one launcher, and clear the other's variables.",
        )
    return next(iter(told.values()))


def _node(nodes: Sequence[str], rank: int, size: int, local_rank: int, local_size: int) -> int:
    """Index of this node, if its ranks are the block that it should have."""
    own = socket.gethostname().partition(".")[0]
    names = [node.partition(".")[0] for node in nodes]
    if own not in names:
        raise UserError(f"{own} among the job's nodes", ", ".join(nodes[:8]), "Clear stale PBS_* variables.")
    node, first = names.index(own), rank - local_rank
    block = _block(node, first, local_size)
    fits = block > 0 and first == node * block and local_size == min(block, size - first)
    if not fits or size > block * len(nodes):
        raise UserError(
            "ranks in blocks of one size a node, the first node first",
            f"ranks {first} to {first + local_size - 1} of {size} on node {node} of {len(nodes)} (from pbs)",
            "Start the workers with `mpiexec -n RANKS --ppn RANKS_PER_NODE`.",
        )
    return node


def _block(node: int, first: int, local_size: int) -> int:
    return local_size if node == 0 else first // node
