"""A process that Open MPI's mpirun started."""

import socket

from scalestudy.cluster.hostlist import expand_hosts
from scalestudy.cluster.pbs import pbs_nodes
from scalestudy.cluster.placement import Placement
from scalestudy.cluster.variables import Environment, Variables, job_port, name_port


def openmpi(environment: Environment) -> Placement | None:
    """The placement by OMPI_COMM_WORLD_*, or None where they are not set.

    mpirun does not name the hosts. On one node they are this machine. In a job of Slurm or PBS they follow
    from the job's node list, where the ranks are in blocks of one size on its first nodes; elsewhere, and
    under another mapping, they stay unknown. (Slurm's task counts would not do: on all nodes but the
    first they are those of mpirun's own daemons.) The port is the job's, MASTER_PORT, or one that
    follows from the name of the PMIx job.

    Raises:
        UserError: If the variables are incomplete or are not numbers.
    """
    if "OMPI_COMM_WORLD_RANK" not in environment:
        return None
    number = Variables(environment, "openmpi").number
    rank, size = number("OMPI_COMM_WORLD_RANK"), number("OMPI_COMM_WORLD_SIZE")
    local_rank, local_size = number("OMPI_COMM_WORLD_LOCAL_RANK"), number("OMPI_COMM_WORLD_LOCAL_SIZE")
    hosts, node = ("",) * size, None
    if local_size == size:
        hosts, node = ("localhost",) * size, 0
    elif nodes := _nodes(environment):
        own = _own_node(environment, nodes)
        per_node = _block_size(own, rank - local_rank, size, local_size, len(nodes))
        if per_node:
            hosts, node = tuple(nodes[each // per_node] for each in range(size)), own
    return Placement(rank, size, local_rank, local_size, node, hosts, "openmpi", _port(environment))


def _nodes(environment: Environment) -> list[str]:
    if "SLURM_JOB_NODELIST" in environment:
        return expand_hosts(environment["SLURM_JOB_NODELIST"])
    return list(pbs_nodes(environment))


def _own_node(environment: Environment, nodes: list[str]) -> int | None:
    own = environment.get("SLURMD_NODENAME") or socket.gethostname()
    short = [node.partition(".")[0] for node in nodes]
    name = own.partition(".")[0]
    return short.index(name) if name in short else None


def _block_size(node: int | None, first: int, size: int, local_size: int, nodes: int) -> int | None:
    """Ranks per node, if those of this one (`local_size` from rank `first` on) fit blocks of one size."""
    if node is None:
        return None
    block = local_size if node == 0 else first // node
    fits = block > 0 and first == node * block and local_size == min(block, size - first)
    return block if fits and size <= block * nodes else None


def _port(environment: Environment) -> int | None:
    port = job_port(environment)
    if port is not None:
        return port
    if environment.get("MASTER_PORT"):
        return Variables(environment, "openmpi").number("MASTER_PORT")
    job = environment.get("PMIX_NAMESPACE")
    return name_port(job) if job else None
