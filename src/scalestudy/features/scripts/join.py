"""Turn a process of a script into one of its workers: determine rank, strategy and device, and join."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from scalestudy.cluster.gpu_assignment import assigned_gpus, device_of, refuse_missing
from scalestudy.cluster.meeting import meeting_in
from scalestudy.cluster.placement import Placement, check_placement
from scalestudy.cluster.resolve import resolve
from scalestudy.cluster.secret import SECRET, secret_set
from scalestudy.features.scripts.detect import main_file
from scalestudy.features.scripts.torchrun import torchrun_variables
from scalestudy.hardware import cores
from scalestudy.hardware.devices import visible_gpus
from scalestudy.study.engines import EngineTraits, engine_of_script, engine_traits
from scalestudy.study.strategies import DEFAULT, REGISTRY, Traits, traits, working_names
from scalestudy.util.errors import UserError
from scalestudy.util.registry import loaded

STRATEGY, WORKERS, DEVICE, FOLDER, OUT, SEED = (
    f"SCALESTUDY_SCRIPT_{name}" for name in ("STRATEGY", "WORKERS", "DEVICE", "FOLDER", "OUT", "SEED")
)
"""Environment variables with which `scalestudy launch` configures its processes and their folders."""


class Start(NamedTuple):
    """The role of a process.

    Attributes:
        placement: Its place among the processes.
        workers: Number of workers.
        strategy: Strategy that does the work.
        device: Device to compute on.
    """

    placement: Placement
    workers: int
    strategy: str
    device: Literal["auto", "cpu", "gpu"]


def strategy_of(name: str, engine: EngineTraits | None = None) -> Traits:
    """Return the strategy for several workers of a script; `engine` is the script's engine.

    Raises:
        UserError: If the strategy is unknown, is asynchronous, copies the model to several devices of a
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
    if not strategy.synchronous:
        raise UserError(
            "a synchronous strategy for a script",
            f"{name}, which has processes besides the workers",
            f"Use {across}.",
        )
    if strategy.one_process and not strategy.one_device:
        raise UserError(
            "a strategy with one device per process for a script",
            f"{name}, which copies the model to several devices",
            f"Use {across}: the same workers, each in its own process.",
        )
    return strategy


def has_own_loop(strategy: Traits) -> bool:
    """Return whether scripts of its engine have their own training loop, so that they are only measured."""
    return bool(engine_traits(strategy.engine).script_modules)


def start_of(variables: Mapping[str, str], strategy: str | None, modules: Mapping[str, Any]) -> Start:
    """Return the role of this process from its environment.

    Args:
        variables: Usually `os.environ`.
        strategy: Strategy that the script requests; that of the launcher takes precedence.
        modules: Usually `sys.modules`.

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
    from scalestudy.engines.base import engine_of

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
    return loaded(engine_traits(kind.engine).script_session)(placement, place, alone=alone)


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
