"""From the environment of a process to its placement. Nothing else reads launchers' variables."""

import socket
from collections.abc import Callable, Mapping

from scalestudy.cluster.placement import Placement
from scalestudy.errors import UserError

Environment = Mapping[str, str]


def resolve(environment: Environment) -> Placement:
    """The placement that the environment describes; a process started alone is rank 0 of 1.

    Args:
        environment: Usually `os.environ`.

    Raises:
        UserError: If a launcher's variables are incomplete, are not numbers, or if two launchers
            disagree about the rank or the size.
    """
    found = [reader(environment) for reader in (_torchrun, _openmpi)]
    placements = [placement for placement in found if placement is not None]
    for other in placements[1:]:
        if (other.rank, other.size) != (placements[0].rank, placements[0].size):
            raise UserError(
                "one answer to which rank this process is",
                f"rank {placements[0].rank} of {placements[0].size} from {placements[0].source}, "
                f"rank {other.rank} of {other.size} from {other.source}",
                "Start the workers with one launcher, and clear the other's variables.",
            )
    return placements[0] if placements else _alone()


def _alone() -> Placement:
    return Placement(0, 1, 0, 1, 0, (socket.gethostname(),), "alone")


def _torchrun(environment: Environment) -> Placement | None:
    """RANK, WORLD_SIZE, LOCAL_RANK, …: the convention of torchrun, which the local launcher follows."""
    if "RANK" not in environment and "WORLD_SIZE" not in environment:
        return None
    number = _numbers(environment, "torchrun")
    rank, size = number("RANK"), number("WORLD_SIZE")
    local_size = number("LOCAL_WORLD_SIZE")
    if local_size != size:
        raise UserError(
            "all workers of a run on this machine",
            f"LOCAL_WORLD_SIZE={local_size} with WORLD_SIZE={size}",
            "Start runs over several nodes through the cluster's own launcher.",
        )
    host = environment.get("MASTER_ADDR", "localhost")
    port = number("MASTER_PORT") if "MASTER_PORT" in environment else None
    return Placement(rank, size, number("LOCAL_RANK"), local_size, 0, (host,) * size, "torchrun", port)


def _openmpi(environment: Environment) -> Placement | None:
    """OMPI_COMM_WORLD_*, which mpirun sets. It does not name the hosts; MPI itself knows them."""
    if "OMPI_COMM_WORLD_RANK" not in environment:
        return None
    number = _numbers(environment, "openmpi")
    size = number("OMPI_COMM_WORLD_SIZE")
    local_size = number("OMPI_COMM_WORLD_LOCAL_SIZE")
    rank = number("OMPI_COMM_WORLD_RANK")
    host = socket.gethostname()
    node = environment.get("OMPI_COMM_WORLD_NODE_RANK", "0")
    hosts = (host,) * size if local_size == size else tuple("" for _ in range(size))
    return Placement(
        rank, size, number("OMPI_COMM_WORLD_LOCAL_RANK"), local_size,
        0 if local_size == size else int(node), hosts, "openmpi",
    )  # fmt: skip


def _numbers(environment: Environment, source: str) -> Callable[[str], int]:
    def number(name: str) -> int:
        value = environment.get(name)
        if value is None or not value.strip().isdigit():
            raise UserError(
                f"a whole number in {name} (from {source})",
                "nothing" if value is None else repr(value),
                "Start all workers with one launcher; do not set its variables by hand.",
            )
        return int(value)

    return number
