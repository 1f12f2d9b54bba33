"""The environment variables that torchrun sets, for scripts with their own training loop."""

import os
from collections.abc import Mapping

from scalestudy.cluster.placement import Placement
from scalestudy.engines.rendezvous import interface_of, known_address
from scalestudy.hardware import cores
from scalestudy.util.errors import UserError

RUN_ID = "TORCHELASTIC_RUN_ID"
"""Set under torchrun; shows frameworks that their processes have been started for them."""


def torchrun_variables(placement: Placement, variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that torchrun would set for this process; empty if torchrun has started it.

    Rank 0 listens at MASTER_ADDR and MASTER_PORT itself, because there is no agent.

    Raises:
        UserError: If the run has no port.
        RunError: If the host of rank 0 is not found.
    """
    if RUN_ID in variables:
        return {}
    if placement.port is None:
        raise UserError(
            "a port for the rendezvous of the processes",
            f"none (from {placement.source})",
            "Set MASTER_PORT to a free port, the same for all processes.",
        )
    address = known_address(placement)
    nodes = len(set(placement.hosts)) if all(placement.hosts) else placement.size // placement.local_size
    values = {
        "RANK": placement.rank, "WORLD_SIZE": placement.size,
        "LOCAL_RANK": placement.local_rank, "LOCAL_WORLD_SIZE": placement.local_size,
        "GROUP_RANK": placement.node_rank or 0, "GROUP_WORLD_SIZE": nodes,
        "ROLE_RANK": placement.rank, "ROLE_WORLD_SIZE": placement.size, "ROLE_NAME": "default",
        "MASTER_ADDR": address, "MASTER_PORT": placement.port,
        RUN_ID: "scalestudy", "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0,
        "TORCHELASTIC_USE_AGENT_STORE": False,
    }  # fmt: skip
    interface = interface_of(placement, address)
    chosen = {"OMP_NUM_THREADS": str(len(cores.granted()))}
    chosen |= {"GLOO_SOCKET_IFNAME": interface} if interface else {}
    return {name: str(value) for name, value in values.items()} | {
        name: value for name, value in chosen.items() if name not in variables
    }
