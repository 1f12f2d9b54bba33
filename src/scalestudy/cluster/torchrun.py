"""The convention of torchrun, which the local launcher follows."""

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.variables import Environment, Variables
from scalestudy.util.errors import UserError


def torchrun(environment: Environment) -> Placement | None:
    """The placement by RANK, WORLD_SIZE, LOCAL_RANK, …, or None where they are not set.

    Raises:
        UserError: If they are incomplete, are not numbers, or describe several nodes.
    """
    if "RANK" not in environment and "WORLD_SIZE" not in environment:
        return None
    number = Variables(environment, "torchrun").number
    rank, size, local_size = number("RANK"), number("WORLD_SIZE"), number("LOCAL_WORLD_SIZE")
    if local_size != size:
        raise UserError(
            "all workers of a run on this machine",
            f"LOCAL_WORLD_SIZE={local_size} with WORLD_SIZE={size} (torchrun does not name its hosts)",
            "Start runs over several nodes through the cluster's own launcher.",
        )
    host = environment.get("MASTER_ADDR", "localhost")
    port = number("MASTER_PORT") if "MASTER_PORT" in environment else None
    return Placement(rank, size, number("LOCAL_RANK"), local_size, 0, (host,) * size, "torchrun", port)
