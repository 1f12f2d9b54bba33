"""From a strategy's name to this process's place among the workers."""

from scalestudy.cluster.placement import Placement
from scalestudy.engines.replicas import Joined
from scalestudy.study.strategies import traits
from scalestudy.util.registry import loaded


def join(
    name: str, placement: Placement, *, workers: int, device: str, communication: str = "auto"
) -> Joined:
    """Join the other workers. Imports only what that strategy needs; its `Traits.join` says where it is.

    The engine must be set up before: devices and threads are fixed once a process computes.

    Args:
        name: Of a strategy that does the work itself.
        placement: This process among the others.
        workers: Workers of the run.
        device: "cpu" or "gpu".
        communication: "auto", "ring" or "nccl", where the strategy has a choice.
    """
    joined: Joined = loaded(traits(name).join)(
        placement, workers=workers, device=device, communication=communication
    )
    return joined
