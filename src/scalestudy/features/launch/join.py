"""Turn a process of a script into one of its workers: determine rank and device, and join."""

import multiprocessing
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from scalestudy.cluster.placement import Placement, check_placement
from scalestudy.cluster.resolve import resolve
from scalestudy.cluster.worker_environment import (
    assigned_gpus,
    device_of,
    refuse_missing,
)
from scalestudy.engines.rendezvous import find_address, interface_of
from scalestudy.features.launch.script_strategy import find_strategy
from scalestudy.hardware import cores
from scalestudy.hardware.devices import visible_gpus
from scalestudy.plugins.engines import engine_traits
from scalestudy.plugins.strategies import SCRIPT_STRATEGY, traits
from scalestudy.util.errors import UserError
from scalestudy.util.registry import load

RUN_ID = "TORCHELASTIC_RUN_ID"
"""Set under torchrun; shows frameworks that their processes have been started for them."""
SPAWNED = "__mp_main__"
"""Module name that multiprocessing gives to the script in a spawned process."""
DEVICE = "SCALESTUDY_SCRIPT_DEVICE"
"""Environment variables with which `scalestudy launch` configures its processes and their folders."""
FOLDER = "SCALESTUDY_SCRIPT_FOLDER"
OUT = "SCALESTUDY_SCRIPT_OUT"
SEED = "SCALESTUDY_SCRIPT_SEED"
STRATEGY = "SCALESTUDY_SCRIPT_STRATEGY"
WORKERS = "SCALESTUDY_SCRIPT_WORKERS"
"""Workers of a run whose one process has all."""
ARGUMENTS = "SCALESTUDY_SCRIPT_ARGUMENTS"
"""Those of the script, before their expressions are filled."""
SOURCE = "SCALESTUDY_SCRIPT_SOURCE"
"""Version of the script."""
WEAK = "SCALESTUDY_SCRIPT_WEAK"
"""Set if epochs grow with the workers on purpose."""
_kept: list[Placement] = []
"""The placement of this process, once `keep_placement` has been called."""


def torchrun_variables(
    placement: Placement, variables: Mapping[str, str] = os.environ
) -> dict[str, str]:
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
    # An address, since the names of nodes need not resolve on all of them.
    address = find_address(placement)
    if all(placement.hosts):
        nodes = len(set(placement.hosts))
    else:
        # Not every launcher names the hosts of all ranks.
        nodes = placement.size // placement.local_size
    values = {
        "RANK": placement.rank,
        "WORLD_SIZE": placement.size,
        "LOCAL_RANK": placement.local_rank,
        "LOCAL_WORLD_SIZE": placement.local_size,
        "GROUP_RANK": placement.node_rank or 0,
        "GROUP_WORLD_SIZE": nodes,
        "ROLE_RANK": placement.rank,
        "ROLE_WORLD_SIZE": placement.size,
        "ROLE_NAME": "default",
        "MASTER_ADDR": address,
        "MASTER_PORT": placement.port,
        RUN_ID: "scalestudy",
        "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
        "TORCHELASTIC_USE_AGENT_STORE": False,
    }
    set_here = {name: str(value) for name, value in values.items()}
    # torchrun sets 1, which leaves the other cores of a worker idle.
    chosen = {"OMP_NUM_THREADS": str(len(cores.granted()))}
    interface = interface_of(placement, address)
    if interface:
        # By itself, Gloo takes the interface of the host's name, which may be the loopback.
        chosen["GLOO_SOCKET_IFNAME"] = interface
    for name, value in chosen.items():
        # The user's own choice stays.
        if name not in variables:
            set_here[name] = value
    return set_here


def main_file(modules: Mapping[str, Any] = sys.modules) -> Path | None:
    """Return the file of the running script; None in a notebook or at a prompt."""
    main = modules.get("__main__")
    if _imports_anew(modules):
        main = modules.get(SPAWNED)
    file = getattr(main, "__file__", None)
    if not file:
        return None
    return Path(file)


def is_helper(modules: Mapping[str, Any] = sys.modules) -> bool:
    """Return whether multiprocessing has started this process, for example to load data."""
    return multiprocessing.parent_process() is not None or _imports_anew(modules)


def _imports_anew(modules: Mapping[str, Any]) -> bool:
    """Return whether this process was spawned and imports the script as `SPAWNED` (elsewhere an alias)."""
    return getattr(modules.get(SPAWNED), "__name__", "") == SPAWNED


class Start(NamedTuple):
    """The role of a process.

    Attributes:
        placement: Its placement.
        device: Device that the user asks for.
        strategy: Name of the strategy of the script.
        workers: Number of workers of the run.
        launched: Whether `scalestudy launch` has started it.
    """

    placement: Placement
    device: Literal["auto", "cpu", "gpu"]
    strategy: str = SCRIPT_STRATEGY
    workers: int = 1
    launched: bool = False


def keep_placement(placement: Placement) -> None:
    """Keep the placement of this process: after torchrun's variables are set, srun's are hidden by them."""
    _kept[:] = [placement]


def start_of(variables: Mapping[str, str], modules: Mapping[str, Any]) -> Start:
    """Return the role of this process. `variables` and `modules` are usually `os.environ` and `sys.modules`.

    Raises:
        UserError: The script trains with no framework that can be measured.
    """
    if _kept:
        placement = _kept[0]
    else:
        placement = resolve(variables)
    strategy = variables.get(STRATEGY)
    if strategy is None:
        file = main_file(modules)
        strategy = SCRIPT_STRATEGY
        if file:
            strategy = find_strategy(file).name
    # One process has all workers under MirroredStrategy.
    workers = int(variables.get(WORKERS) or placement.size)
    device = variables.get(DEVICE)
    # Only `scalestudy launch` states the device.
    launched = device is not None
    return Start(placement, device or "auto", strategy, workers, launched)  # type: ignore[arg-type]


def session_of(start: Start, *, alone: bool = False) -> Any:
    """Set torchrun's variables, and return the session that measures a script.

    With `alone`, the session does not join other processes. Nor does a Keras script that `scalestudy launch`
    has not started: it is not measured.

    Raises:
        UserError: If the placement contradicts the strategy, or has no port.
        RunError: If the other workers are not found, or a GPU is missing.
    """
    placement = start.placement
    kind = traits(start.strategy)
    session = load(engine_traits(kind.engine).script_session)
    if kind.name != SCRIPT_STRATEGY and not start.launched:
        return session(placement, None, alone=True)
    gpus = gpus_of_start(start)
    # A launched Keras script may see its own GPU alone: `script_process` has checked them before.
    checked = None
    if kind.name == SCRIPT_STRATEGY:
        checked = gpus
    check_placement(
        placement,
        strategy=kind,
        workers=start.workers,
        gpus=checked,
    )
    if placement.size > 1:
        os.environ.update(torchrun_variables(placement))
    place = None
    if gpus is not None:
        place = placement.gpu_place(gpus)
    return session(placement, place, alone=alone)


def gpus_of_start(start: Start) -> int | None:
    """Return the GPUs that this process sees, or None if its run computes on CPUs.

    Raises:
        RunError: If GPUs are missing.
    """
    seen = visible_gpus(os.environ)
    assigned = assigned_gpus(os.environ)
    used = device_of(start.device, assigned, seen)
    if used == "cpu":
        return None
    refuse_missing(assigned, seen)
    return len(seen)
