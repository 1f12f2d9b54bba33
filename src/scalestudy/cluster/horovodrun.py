"""A process that `horovodrun --gloo` started."""

from scalestudy.cluster.placement import Placement
from scalestudy.cluster.variables import Environment, Variables


def horovodrun(environment: Environment) -> Placement | None:
    """The placement by HOROVOD_RANK, …, or None where they are not set.

    horovodrun holds the rendezvous itself, and names only the host of this process.

    Raises:
        UserError: If its variables are incomplete or are not numbers.
    """
    if "HOROVOD_RANK" not in environment or "HOROVOD_GLOO_RENDEZVOUS_ADDR" not in environment:
        return None
    number = Variables(environment, "horovodrun").number
    size, local_size = number("HOROVOD_SIZE"), number("HOROVOD_LOCAL_SIZE")
    host = environment.get("HOROVOD_HOSTNAME", "localhost") if local_size == size else ""
    return Placement(
        number("HOROVOD_RANK"), size, number("HOROVOD_LOCAL_RANK"), local_size,
        0 if local_size == size else None, (host,) * size, "horovodrun",
    )  # fmt: skip
