"""Derive the placement of a process from its environment. No other module reads ranks from variables."""

import itertools
import re
import socket
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from scalestudy.cluster.placement import Placement
from scalestudy.util.errors import UserError
from scalestudy.util.registry import Registry

Environment = Mapping[str, str]
FIRST_PORT, PORT_BLOCKS, PORT_BLOCK = 20_000, 187, 64
"""Ports of a run, below the range that Linux assigns by itself (from 32768)."""
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
_RANGES = r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*"
_ELEMENT = re.compile(rf"(?:[A-Za-z0-9._-]|\[{_RANGES}\])+", re.ASCII)
_LIST = re.compile(rf"[,\s]*(?:{_ELEMENT.pattern}(?:[,\s]+|$))*", re.ASCII)


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
        name = next((name for name in names if name in self._environment), names[0])
        value = self._environment.get(name, "").strip()
        if not (value.isascii() and value.isdigit()):
            raise self._refused(f"a whole number in {name} (from {self._source})", name)
        return int(value)

    def _refused(self, expected: str, name: str) -> UserError:
        value = self._environment.get(name)
        return UserError(
            expected,
            "nothing" if value is None else repr(value),
            "Start all workers with one launcher, and do not set its variables by hand.",
        )


def contradiction(received: str) -> UserError:
    """Return the error for launchers that disagree about the rank."""
    return UserError(
        "one rank for this process",
        received,
        "Start the workers with one launcher, and clear the other's variables.",
    )


def job_port(environment: Environment) -> int | None:
    """Return the first port of a Slurm or PBS job, the same on all its nodes; None outside of a job."""
    job = environment.get("SLURM_JOB_ID", "")
    if job.isascii() and job.isdigit():
        return _port_block(int(job))
    return name_port(environment["PBS_JOBID"]) if environment.get("PBS_JOBID") else None


def name_port(name: str) -> int:
    """Return the first port of a run, derived from a name that all its processes know."""
    return _port_block(zlib.crc32(name.encode()))


def _port_block(number: int) -> int:
    return FIRST_PORT + number % PORT_BLOCKS * PORT_BLOCK


PLACEMENTS: Registry[Callable[[Environment], Placement | None]] = Registry(
    "scalestudy.placements",
    lambda: {"torchrun": torchrun, "openmpi": openmpi, "pbs": pbs},
)
"""Functions that read the placement from a launcher's variables; None without them."""


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
    placements = [place for read in PLACEMENTS.items() if (place := read(environment))]
    step = slurm(environment)
    if step and not (placements and len(set(step.hosts)) == step.size):
        placements.append(step)
    for other in placements[1:]:
        first = placements[0]
        if (other.rank, other.size) != (first.rank, first.size):
            raise contradiction(
                f"rank {first.rank} of {first.size} from {first.source}, "
                f"rank {other.rank} of {other.size} from {other.source}"
            )
    named = (placement for placement in placements if all(placement.hosts))
    placement = next(named, placements[0] if placements else None)
    return placement or Placement(0, 1, 0, 1, 0, (socket.gethostname(),), "alone")


def torchrun(environment: Environment) -> Placement | None:
    """Return the placement from torchrun's variables, which the local launcher sets too; None without them.

    On several nodes, only the first node's host is known, unless the launcher sets `HOSTS`.
    """
    if "RANK" not in environment and "WORLD_SIZE" not in environment:
        return None
    number = Variables(environment, "torchrun").number
    rank, size, local_size = (
        number("RANK"),
        number("WORLD_SIZE"),
        number("LOCAL_WORLD_SIZE"),
    )
    host = environment.get("MASTER_ADDR", "localhost")
    port = number("MASTER_PORT") if "MASTER_PORT" in environment else None
    one_node = local_size == size
    node = 0 if one_node else number("GROUP_RANK")
    hosts = (host,) * size if one_node else (host, *[""] * (size - 1))
    if HOSTS in environment:
        hosts = tuple(environment[HOSTS].split(","))
    return Placement(
        rank, size, number("LOCAL_RANK"), local_size, node, hosts, "torchrun", port
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
    local_rank, local_size = (
        number("OMPI_COMM_WORLD_LOCAL_RANK"),
        number("OMPI_COMM_WORLD_LOCAL_SIZE"),
    )
    slurm_nodes = environment.get("SLURM_JOB_NODELIST")
    nodes = pbs_nodes(environment) if slurm_nodes is None else expand_hosts(slurm_nodes)
    host = environment.get("SLURMD_NODENAME") or socket.gethostname()
    node, hosts = _blocks(nodes, host, rank - local_rank, size, local_size) or (
        None,
        ("",) * size,
    )
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
    if (
        "PBS_JOBID" not in environment
        or not {"PMI_RANK", "PALS_RANKID"} & environment.keys()
    ):
        return None
    number = Variables(environment, "pbs").number
    rank, size = number("PMI_RANK", "PALS_RANKID"), number("PMI_SIZE")
    local_rank = number("PMI_LOCAL_RANK", "PALS_LOCAL_RANKID", "MPI_LOCALRANKID")
    local_size = number("PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE", "MPI_LOCALNRANKS")
    nodes, host, first = pbs_nodes(environment), socket.gethostname(), rank - local_rank
    blocks = _blocks(nodes, host, first, size, local_size)
    if blocks is None:
        raise UserError(
            "ranks in blocks, equally many on each node, starting with the first node",
            f"ranks {first} to {first + local_size - 1} of {size} on {host}, of the nodes "
            f"{', '.join(nodes[:8]) or 'none'} (from pbs)",
            "Start the workers with `mpiexec -n RANKS --ppn RANKS_PER_NODE`, from a job script of scalestudy "
            f"or with {NODES} exported to all ranks.",
        )
    return Placement(
        rank, size, local_rank, local_size, *blocks, "pbs", job_port(environment)
    )


def pbs_nodes(environment: Environment) -> Sequence[str]:
    """Return the nodes of a PBS job, each once, in PBS's order; none outside of a job or if unknown."""
    if "PBS_JOBID" not in environment:
        return ()
    nodes = environment.get(NODES, "").split(",")
    if not any(nodes) and environment.get("PBS_NODEFILE"):
        try:
            nodes = Path(environment["PBS_NODEFILE"]).read_text().split()
        except OSError:
            return ()
    return list(dict.fromkeys(node for node in nodes if node))


def _blocks(
    nodes: Sequence[str], host: str, first: int, size: int, local_size: int
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
    short = [node.partition(".")[0] for node in nodes]
    name = host.partition(".")[0]
    if name not in short:
        return None
    node = short.index(name)
    block = local_size if node == 0 else first // node
    fits = (
        block > 0 and first == node * block and local_size == min(block, size - first)
    )
    if not fits or size > block * len(nodes):
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
    size = variables.number(
        "SLURM_STEP_NUM_TASKS"
        if "SLURM_STEP_NUM_TASKS" in environment
        else "SLURM_NTASKS"
    )
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
    node, local = nodes[rank], nodes[:rank].count(nodes[rank])
    by_slurm = variables.number("SLURM_NODEID"), variables.number("SLURM_LOCALID")
    if by_slurm != (node, local):
        raise UserError(
            f"rank {rank} to be task {local} of node {node} ({hosts[node]})",
            f"SLURM_LOCALID={by_slurm[1]} and SLURM_NODEID={by_slurm[0]}",
            "Start the workers with `srun --distribution=block`, and clear stale SLURM_* variables.",
        )
    return Placement(
        rank,
        size,
        local,
        counts[node],
        node,
        tuple(hosts[index] for index in nodes),
        "slurm",
        port=job_port(environment),
        gpus=variables.number("SLURM_GPUS_ON_NODE")
        if "SLURM_GPUS_ON_NODE" in environment
        else None,
    )


def _distribute(counts: Sequence[int], distribution: str) -> list[int]:
    order = distribution.partition(",")[0].partition(":")[0]
    if order != "block" and len(counts) > 1 and max(counts) > 1:
        raise UserError(
            "tasks distributed over nodes in blocks",
            f"SLURM_DISTRIBUTION={distribution}",
            "Start the workers with `srun --distribution=block`.",
        )
    return [node for node, count in enumerate(counts) for _ in range(count)]


def expand_hosts(text: str) -> list[str]:
    """Return the hosts of a Slurm host list: `n[1-2,05-07]-ib` is n1-ib, n2-ib, n05-ib, n06-ib, n07-ib.

    Order, duplicates and widths are Slurm's. With several brackets in a name, the last one varies fastest,
    then the first (as in `scontrol show hostnames`).

    Raises:
        UserError: If the list is malformed.
    """
    if not _LIST.fullmatch(text):
        raise _malformed(repr(text))
    hosts: list[str] = []
    for element in _ELEMENT.findall(text):
        parts = re.split(r"\[(.*?)\]", element)
        brackets = [_numbers(part, text) for part in parts[1::2]]
        order = [*brackets[-2::-1], *brackets[-1:]]
        for chosen in itertools.product(*order):
            numbers = (*chosen[-2::-1], *chosen[-1:], "")
            hosts.append(
                "".join(itertools.chain(*zip(parts[::2], numbers, strict=True)))
            )
    return hosts


def _numbers(bracket: str, text: str) -> list[str]:
    numbers: list[str] = []
    for part in bracket.split(","):
        low, _, high = part.partition("-")
        first, last = int(low), int(high or low)
        if first > last:
            raise _malformed(f"the range {part!r} in {text!r}")
        numbers += [str(number).zfill(len(low)) for number in range(first, last + 1)]
    return numbers


def _malformed(received: str) -> UserError:
    return UserError(
        "a Slurm host list such as n[1-2,05-07]-ib,m3",
        received,
        "Use Slurm's own list: SLURM_JOB_NODELIST, or `squeue -o %N`.",
    )


def tasks_per_node(text: str) -> list[int]:
    """Return the number of tasks of each node from Slurm's short form: `2(x3),1` is 2, 2, 2, 1.

    Raises:
        UserError: If it is malformed.
    """
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part, re.ASCII)
        times = int(match[2] or 1) if match else 0
        if match is None or not times:
            raise UserError(
                "Slurm's tasks per node, such as 2(x3),1",
                repr(text),
                "Use the value of SLURM_TASKS_PER_NODE.",
            )
        counts += [int(match[1])] * times
    return counts
