"""Derive the placement of a process from its environment. No other module reads ranks from variables."""

import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.ports import job_port, name_port
from scalestudy.cluster.slurm_lists import expand_hosts, tasks_per_node
from scalestudy.util.errors import UserError
from scalestudy.util.registry import Registry

Environment = Mapping[str, str]
PROGRESS_TIMEOUT = "SCALESTUDY_PROGRESS_TIMEOUT"
"""Variable: seconds that a run may be without progress, and that its ranks may start apart."""
PROXIES = (
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "grpc_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)
"""Variables that would send gRPC's traffic, and so that of multi-worker runs, through a proxy."""
FIRST_SPECIAL_STEP = 0xFFFFFFF0
"""First of the step numbers that Slurm uses itself, for the batch script or an interactive shell."""
HOSTS = "SCALESTUDY_HOSTS"
"""Host of every rank, by rank, of a study on several hosts without a queue."""
NODES = "SCALESTUDY_NODES"
"""Nodes of a PBS job. Job scripts read them from the file of PBS, which only the first node has."""
# A function, since those that it names are defined below.
PLACEMENTS: Registry[Callable[[Environment], Placement | None]] = Registry(
    "scalestudy.placements",
    lambda: {"torchrun": torchrun, "openmpi": openmpi, "pbs": pbs},
)
"""Functions that read the placement from a launcher's variables; None without them."""


class Variables:
    """The variables of one launcher. A missing or malformed one is refused by name.

    Args:
        environment: Usually `os.environ`.
        source: Name of the launcher.
    """

    def __init__(self, environment: Environment, source: str) -> None:
        self._environment, self._source = environment, source

    def text(self, name: str) -> str:
        """Return the text of a required variable.

        Raises:
            UserError: If it is missing or empty.
        """
        value = self._environment.get(name, "").strip()
        if not value:
            raise self._refused(f"{name} (from {self._source})", name)
        return value

    def number(self, *names: str) -> int:
        """Return a required whole number, not below 0, from the first of these names that is set.

        Raises:
            UserError: If it is missing or anything else.
        """
        # If none is set, the first is named in the error.
        name = names[0]
        for candidate in names:
            if candidate in self._environment:
                name = candidate
                break
        value = self._environment.get(name, "").strip()
        # isdigit alone accepts digits of other scripts.
        if not (value.isascii() and value.isdigit()):
            raise self._refused(f"a whole number in {name} (from {self._source})", name)
        return int(value)

    def _refused(self, expected: str, name: str) -> UserError:
        received = "nothing"
        if name in self._environment:
            received = repr(self._environment[name])
        return UserError(
            expected,
            received,
            "Start all workers with one launcher, and do not set its variables by hand.",
        )


def contradiction(received: str) -> UserError:
    """Return the error for launchers that disagree about the rank."""
    return UserError(
        "one rank for this process",
        received,
        "Start the workers with one launcher, and clear the other's variables.",
    )


def resolve(environment: Environment) -> Placement:
    """Return the placement that the environment describes; a process started alone is rank 0 of 1.

    Launchers nest: in a Slurm job, mpirun starts one daemon per node as a Slurm task, and the ranks inherit
    its variables, so that all ranks of a node have the same SLURM_PROCID. Such a step is ignored in favour of
    the inner launcher. Otherwise, all launchers must agree.

    Args:
        environment: Usually `os.environ`.

    Raises:
        UserError: If a launcher's variables are incomplete or not numbers, or if two launchers disagree about
            the rank or the size.
    """
    placements = []
    for read in PLACEMENTS.items():
        placement = read(environment)
        if placement is not None:
            placements.append(placement)
    step = slurm(environment)
    if step is not None:
        # As of mpirun's daemons. A step of one rank per node looks alike, and has no inner launcher.
        one_task_per_node = len(set(step.hosts)) == step.size
        if not (placements and one_task_per_node):
            placements.append(step)
    if not placements:
        return Placement(0, 1, 0, 1, 0, (socket.gethostname(),), "alone")
    first = placements[0]
    for other in placements[1:]:
        if (other.rank, other.size) != (first.rank, first.size):
            raise contradiction(
                f"rank {first.rank} of {first.size} from {first.source}, "
                f"rank {other.rank} of {other.size} from {other.source}"
            )
    # They agree on the rank; not all know the hosts, which a strategy with addresses needs.
    for placement in placements:
        if all(placement.hosts):
            return placement
    return first


def torchrun(environment: Environment) -> Placement | None:
    """Return the placement from torchrun's variables, which the local launcher sets too; None without them.

    On several nodes, only the first node's host is known, unless the launcher sets `HOSTS`.
    """
    # With one of both, the other is missed by name.
    if "RANK" not in environment and "WORLD_SIZE" not in environment:
        return None
    number = Variables(environment, "torchrun").number
    rank, size = number("RANK"), number("WORLD_SIZE")
    local_size = number("LOCAL_WORLD_SIZE")
    first_host = environment.get("MASTER_ADDR", "localhost")
    if local_size == size:
        node = 0
        hosts = (first_host,) * size
    else:
        node = number("GROUP_RANK")
        hosts = (first_host, *[""] * (size - 1))
    if HOSTS in environment:
        hosts = tuple(environment[HOSTS].split(","))
    local_rank = number("LOCAL_RANK")
    port = None
    if "MASTER_PORT" in environment:
        port = number("MASTER_PORT")
    return Placement(
        rank,
        size,
        local_rank,
        local_size,
        node,
        hosts,
        "torchrun",
        port=port,
    )


def openmpi(environment: Environment) -> Placement | None:
    """Return the placement of a process that Open MPI's mpirun started, or None.

    mpirun does not name the hosts. On one node they are this machine. In a Slurm or PBS job they follow from
    the job's node list if the ranks fill its first nodes in blocks of equal size; otherwise they are unknown.
    (Slurm's task counts are those of mpirun's daemons on all nodes but the first.) The port is derived from
    the job, else MASTER_PORT, else derived from the name of the PMIx job.
    """
    if "OMPI_COMM_WORLD_RANK" not in environment:
        return None
    number = Variables(environment, "openmpi").number
    rank, size = number("OMPI_COMM_WORLD_RANK"), number("OMPI_COMM_WORLD_SIZE")
    local_rank = number("OMPI_COMM_WORLD_LOCAL_RANK")
    local_size = number("OMPI_COMM_WORLD_LOCAL_SIZE")
    nodes = pbs_nodes(environment)
    if "SLURM_JOB_NODELIST" in environment:
        nodes = expand_hosts(environment["SLURM_JOB_NODELIST"])
    host = environment.get("SLURMD_NODENAME") or socket.gethostname()
    # Unknown rather than wrong: `mpirun --map-by node` deals ranks out in turns.
    node, hosts = None, ("",) * size
    blocks = _blocks(nodes, host, rank - local_rank, size, local_size)
    if blocks is not None:
        node, hosts = blocks
    port = job_port(environment)
    if port is None and environment.get("MASTER_PORT"):
        port = number("MASTER_PORT")
    elif port is None and environment.get("PMIX_NAMESPACE"):
        port = name_port(environment["PMIX_NAMESPACE"])
    return Placement(rank, size, local_rank, local_size, node, hosts, "openmpi", port)


def pbs(environment: Environment) -> Placement | None:
    """Return the placement of a process that mpiexec started in a PBS job (PALS, Hydra, Intel MPI), or None.

    PBS itself starts one process, the job script, and names the job's nodes. The launcher provides the rank:
    HPE's PALS in PALS_* and PMI_*, MPICH's Hydra in PMI_* and MPI_LOCAL*. Ranks must be in blocks: the first
    node is filled first, and only the last node may have fewer than the others.
    """
    started = "PMI_RANK" in environment or "PALS_RANKID" in environment
    if "PBS_JOBID" not in environment or not started:
        return None
    number = Variables(environment, "pbs").number
    rank, size = number("PMI_RANK", "PALS_RANKID"), number("PMI_SIZE")
    local_rank = number("PMI_LOCAL_RANK", "PALS_LOCAL_RANKID", "MPI_LOCALRANKID")
    local_size = number("PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE", "MPI_LOCALNRANKS")
    nodes = pbs_nodes(environment)
    host = socket.gethostname()
    first = rank - local_rank
    blocks = _blocks(nodes, host, first, size, local_size)
    if blocks is None:
        raise UserError(
            "ranks in blocks, equally many on each node, starting with the first node",
            f"ranks {first} to {first + local_size - 1} of {size} on {host}, of the nodes "
            f"{', '.join(nodes[:8]) or 'none'} (from pbs)",
            "Start the workers with `mpiexec -n RANKS --ppn RANKS_PER_NODE`, from a job script of scalestudy "
            f"or with {NODES} exported to all ranks.",
        )
    node, hosts = blocks
    port = job_port(environment)
    return Placement(rank, size, local_rank, local_size, node, hosts, "pbs", port)


def pbs_nodes(environment: Environment) -> Sequence[str]:
    """Return the nodes of a PBS job, each once, in PBS's order; none outside of a job or if unknown."""
    if "PBS_JOBID" not in environment:
        return ()
    nodes = [node for node in environment.get(NODES, "").split(",") if node]
    if not nodes and environment.get("PBS_NODEFILE"):
        try:
            nodes = Path(environment["PBS_NODEFILE"]).read_text().split()
        except OSError:
            return ()
    # The file of PBS names a node once for each rank on it.
    return list(dict.fromkeys(nodes))


def _blocks(
    nodes: Sequence[str],
    host: str,
    first: int,
    size: int,
    local_size: int,
) -> tuple[int, tuple[str, ...]] | None:
    """Return the index of this node and the host of every rank, if ranks fill the nodes in equal blocks.

    Args:
        nodes: Nodes of the job; not needed if all ranks are on this node.
        host: Name of this node.
        first: Lowest rank on this node.
        size: Number of ranks of the run.
        local_size: Number of ranks on this node.
    """
    if local_size == size:
        return 0, ("localhost",) * size
    # A scheduler may list short names where a host knows its long one, and the other way round.
    short = [node.partition(".")[0] for node in nodes]
    name = host.partition(".")[0]
    if name not in short:
        return None
    node = short.index(name)
    # This node's ranks alone do not tell the size of a block if it is the last node.
    block = local_size if node == 0 else first // node
    if block == 0 or first != node * block or size > block * len(nodes):
        return None
    if local_size != min(block, size - first):
        return None
    return node, tuple(nodes[rank // block] for rank in range(size))


def slurm(environment: Environment) -> Placement | None:
    """Return the placement of a task of a step of srun; None outside of Slurm and in the batch script.

    Raises:
        UserError: If the step's variables are incomplete or contradictory, or if its tasks are distributed
            over nodes other than in blocks.
    """
    step = environment.get("SLURM_STEP_ID", "")
    if not (step.isascii() and step.isdigit() and int(step) < FIRST_SPECIAL_STEP):
        return None
    variables = Variables(environment, "slurm")
    rank = variables.number("SLURM_PROCID")
    # The job's number, unless the step has another.
    counted = "SLURM_NTASKS"
    if "SLURM_STEP_NUM_TASKS" in environment:
        counted = "SLURM_STEP_NUM_TASKS"
    size = variables.number(counted)
    hosts = expand_hosts(variables.text("SLURM_STEP_NODELIST"))
    counts = tasks_per_node(variables.text("SLURM_STEP_TASKS_PER_NODE"))
    if len(hosts) != len(counts) or sum(counts) != size or rank >= size:
        raise UserError(
            "a consistent number of tasks in the Slurm step",
            f"rank {rank} of {size} tasks, {environment['SLURM_STEP_TASKS_PER_NODE']} on "
            f"{environment['SLURM_STEP_NODELIST']} (from slurm)",
            "Start the workers with srun, and clear stale SLURM_* variables.",
        )
    nodes = _distribute(counts, environment.get("SLURM_DISTRIBUTION", "block"))
    node = nodes[rank]
    local = nodes[:rank].count(node)
    # Slurm's own numbers must agree, or another launcher's variables are mixed with its own.
    said_local = variables.number("SLURM_LOCALID")
    said_node = variables.number("SLURM_NODEID")
    if (said_node, said_local) != (node, local):
        raise UserError(
            f"rank {rank} to be task {local} of node {node} ({hosts[node]})",
            f"SLURM_LOCALID={said_local} and SLURM_NODEID={said_node}",
            "Start the workers with `srun --distribution=block`, and clear stale SLURM_* variables.",
        )
    gpus = None
    if "SLURM_GPUS_ON_NODE" in environment:
        gpus = variables.number("SLURM_GPUS_ON_NODE")
    return Placement(
        rank,
        size,
        local,
        counts[node],
        node,
        tuple(hosts[index] for index in nodes),
        "slurm",
        port=job_port(environment),
        gpus=gpus,
    )


def _distribute(counts: Sequence[int], distribution: str) -> list[int]:
    """Return the node of each task, by rank."""
    # "block:cyclic,Pack": only the first word is about nodes, the others about sockets and cores.
    order = distribution.partition(",")[0].partition(":")[0]
    # With one node, or one task on each, every order is the same.
    if order != "block" and len(counts) > 1 and max(counts) > 1:
        raise UserError(
            "tasks distributed over nodes in blocks",
            f"SLURM_DISTRIBUTION={distribution}",
            "Start the workers with `srun --distribution=block`.",
        )
    nodes = []
    for node, count in enumerate(counts):
        nodes += [node] * count
    return nodes
