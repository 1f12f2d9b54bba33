"""Turn a process of a script into one of its workers: determine rank, strategy and device, and join."""

import contextlib
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from scalestudy.cluster.placement import Placement, check_placement
from scalestudy.cluster.private_files import SECRET, meeting_in, secret_set
from scalestudy.cluster.resolve import resolve
from scalestudy.cluster.worker_environment import assigned_gpus, device_of, refuse_missing
from scalestudy.engines.rendezvous import find_address, interface_of
from scalestudy.hardware import cores
from scalestudy.hardware.devices import visible_gpus
from scalestudy.plugins.engines import EngineTraits, engine_of_script, engine_traits
from scalestudy.plugins.strategies import DEFAULT, REGISTRY, Traits, traits, working_names
from scalestudy.util.errors import UserError
from scalestudy.util.registry import load

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
    address = find_address(placement)
    nodes = len(set(placement.hosts)) if all(placement.hosts) else placement.size // placement.local_size
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
    interface = interface_of(placement, address)
    chosen = {"OMP_NUM_THREADS": str(len(cores.granted()))}
    chosen |= {"GLOO_SOCKET_IFNAME": interface} if interface else {}
    return {name: str(value) for name, value in values.items()} | {
        name: value for name, value in chosen.items() if name not in variables
    }


SPAWNED = "__mp_main__"
"""Module name that multiprocessing gives to the script in a spawned process."""


def main_file(modules: Mapping[str, Any] = sys.modules) -> Path | None:
    """Return the file of the running script; None in a notebook or at a prompt."""
    main = modules.get(SPAWNED) if _imports_anew(modules) else modules.get("__main__")
    file = getattr(main, "__file__", None)
    return Path(file) if file else None


def is_helper(modules: Mapping[str, Any] = sys.modules) -> bool:
    """Return whether multiprocessing has started this process, for example to load data."""
    return multiprocessing.parent_process() is not None or _imports_anew(modules)


def _imports_anew(modules: Mapping[str, Any]) -> bool:
    """Return whether this process was spawned and imports the script as `SPAWNED` (elsewhere an alias)."""
    return getattr(modules.get(SPAWNED), "__name__", "") == SPAWNED


STRATEGY, WORKERS, DEVICE, FOLDER, OUT, SEED = (
    f"SCALESTUDY_SCRIPT_{name}" for name in ("STRATEGY", "WORKERS", "DEVICE", "FOLDER", "OUT", "SEED")
)
"""Environment variables with which `scalestudy launch` configures its processes and their folders."""


class Start(NamedTuple):
    """The role of a process."""

    placement: Placement
    workers: int
    strategy: str
    device: Literal["auto", "cpu", "gpu"]


def strategy_of(name: str, engine: EngineTraits | None = None) -> Traits:
    """Return the strategy for several workers of a script; `engine` is the script's engine.

    Raises:
        UserError: If the strategy is unknown, copies the model to several devices of a
            process, or does not suit a script with its own training loop.
    """
    if name == DEFAULT:
        return traits((engine or engine_traits(traits(name).engine)).across)
    if name not in REGISTRY:
        raise UserError(
            f"one of the strategies {', '.join(working_names())}", repr(name), "Choose one of these."
        )
    strategy = traits(name)
    across = engine_traits(strategy.engine).across
    if has_own_loop(strategy) and name != across:
        raise UserError(
            f"{across}, for a script with its own training loop", name, f"Use --strategy {across}."
        )
    if strategy.one_process and not strategy.one_device:
        raise UserError(
            "a synchronous strategy with one device per process for a script", name, f"Use {across}."
        )
    return strategy


def has_own_loop(strategy: Traits) -> bool:
    """Return whether scripts of its engine have their own training loop, so that they are only measured."""
    return bool(engine_traits(strategy.engine).script_modules)


def start_of(variables: Mapping[str, str], strategy: str | None, modules: Mapping[str, Any]) -> Start:
    """Return the role of this process from its environment.

    `variables` and `modules` are usually `os.environ` and `sys.modules`. The launcher's strategy takes
    precedence over the `strategy` that the script requests.

    Raises:
        UserError: If the strategy cannot be used, or Keras has another backend.
    """
    placement = resolve(variables)
    file = main_file(modules)
    engine = engine_of_script(file, variables) if file else None
    kind = strategy_of(variables.get(STRATEGY) or strategy or DEFAULT, engine)
    if has_own_loop(kind):
        return Start(placement, placement.size, kind.name, variables.get(DEVICE) or "auto")  # type: ignore[arg-type]
    workers = int(variables.get(WORKERS) or placement.size)
    if workers == 1:
        return Start(placement, 1, traits(DEFAULT).implementation(1, 1), "auto")
    backend = modules["keras"].config.backend() if "keras" in modules else kind.engine
    if backend != kind.engine:
        raise UserError(
            f"Keras on {kind.engine}, for several workers of {kind.name}",
            f"on {backend}",
            f"Set KERAS_BACKEND={kind.engine}, or train on one worker.",
        )
    return Start(placement, workers, kind.name, variables.get(DEVICE) or "auto")  # type: ignore[arg-type]


def session_of(start: Start) -> Any:
    """Set up the framework of this process, and join the other workers.

    Raises:
        UserError: If the framework has computed before, or the placement contradicts the strategy.
        RunError: If the other workers are not found, or a GPU is missing.
    """
    from scalestudy.worker import take_part

    placement, kind = start.placement, traits(start.strategy)
    device, _ = take_part(placement, kind, start.workers, start.device)
    from scalestudy.engines.interface import engine_of

    with _secret(placement) if kind.rendezvous and kind.rendezvous.secret else contextlib.nullcontext():
        return engine_of(kind.engine).script_session(
            kind.name, placement, workers=start.workers, device=device, threads=len(cores.granted())
        )


def loop_session_of(start: Start, *, alone: bool = False) -> Any:
    """Set torchrun's variables, and return the session that measures a script with its own loop.

    With `alone`, the session does not join other processes.

    Raises:
        UserError: If the placement contradicts the strategy, or has no port.
        RunError: If the other workers are not found, or a GPU is missing.
    """
    placement, kind = start.placement, traits(start.strategy)
    seen, assigned = visible_gpus(os.environ), assigned_gpus(os.environ)
    used = device_of(start.device, assigned, seen)
    if used == "gpu":
        refuse_missing(assigned, seen)
    gpus = len(seen) if used == "gpu" else None
    check_placement(placement, strategy=kind, workers=start.workers, gpus=gpus)
    if placement.size > 1:
        os.environ.update(torchrun_variables(placement))
    place = None if gpus is None else placement.gpu_place(gpus)
    return load(engine_traits(kind.engine).script_session)(placement, place, alone=alone)


@contextlib.contextmanager
def _secret(placement: Placement) -> Iterator[None]:
    """Give the processes a secret while the context is active: the launcher's, or one in a shared folder."""
    if placement.size == 1 or os.environ.get(SECRET):
        yield
        return
    names = ("SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "PBS_JOBID")
    job = "-".join(filter(None, (os.environ.get(name, "") for name in names))) or "run"
    folder = Path.cwd() / f".scalestudy-{''.join(letter if letter.isalnum() else '-' for letter in job)}"
    folder.mkdir(exist_ok=True)
    try:
        with secret_set(folder, placement), meeting_in(folder, placement):
            yield
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()
