"""How a process of a script becomes one of its workers: who it is, what it computes on, whom it joins."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scalestudy.cluster.environment import own_gpus, process_environment
from scalestudy.cluster.placement import Placement, check_placement
from scalestudy.cluster.promise import device_of, promised, refuse_missing
from scalestudy.cluster.resolve import resolve
from scalestudy.cluster.secret import SECRET, secret_set
from scalestudy.hardware import cores
from scalestudy.hardware.devices import visible_gpus
from scalestudy.study.engines import engine_traits
from scalestudy.study.strategies import DEFAULT, REGISTRY, traits, working_names
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.engines.group import Joined

STRATEGY, WORKERS, DEVICE = (
    "SCALESTUDY_SCRIPT_STRATEGY",
    "SCALESTUDY_SCRIPT_WORKERS",
    "SCALESTUDY_SCRIPT_DEVICE",
)
"""Variables by which `scalestudy launch` says what its processes are to be."""


class Start(NamedTuple):
    """What a process is to be.

    Attributes:
        placement: Among the other processes.
        workers: How many workers there are.
        strategy: That does the work.
        device: What it computes on.
    """

    placement: Placement
    workers: int
    strategy: str
    device: Literal["auto", "cpu", "gpu"]


def start_of(variables: Mapping[str, str], strategy: str | None, modules: Mapping[str, Any]) -> Start:
    """What the environment of a process says that it is to be.

    Args:
        variables: Usually `os.environ`.
        strategy: What the script asks for; what the launcher says goes before.
        modules: Usually `sys.modules`.

    Raises:
        UserError: If that cannot be.
    """
    placement = resolve(variables)
    name = variables.get(STRATEGY) or strategy or DEFAULT
    if name not in REGISTRY:
        raise UserError(f"a strategy among {', '.join(working_names())}", repr(name), "Name one of them.")
    workers = int(variables.get(WORKERS) or placement.size)
    if workers == 1:
        return Start(placement, 1, traits(DEFAULT).implementation(1, 1), "auto")
    found = traits(name).implementation(workers, 1 if placement.size == 1 else 2)
    if "keras" in modules and modules["keras"].config.backend() != "tensorflow":
        raise UserError(
            "Keras on TensorFlow, for several workers",
            f"on {modules['keras'].config.backend()}",
            "Set KERAS_BACKEND=tensorflow, or train on one worker.",
        )
    device: Any = variables.get(DEVICE) or "auto"
    return Start(placement, workers, found, device)


def joined(start: Start) -> "Joined":
    """Set TensorFlow up as the only framework of this process, and join the other workers.

    Raises:
        UserError: If TensorFlow has computed before, or the placement contradicts the strategy.
        RunError: If the others are not found, or a GPU is missing.
    """
    placement, kind = start.placement, traits(start.strategy)
    seen, promise = visible_gpus(os.environ), promised(os.environ)
    device = device_of(start.device, promise, seen)
    if device == "gpu":
        refuse_missing(promise, seen)
    check_placement(
        placement, strategy=kind, workers=start.workers, gpus=len(seen) if device == "gpu" else None
    )
    lanes = kind.workers_at_once(start.workers)
    own: list[str] = []
    if device == "gpu":
        own = own_gpus(os.environ, seen, local_rank=placement.gpu_place(len(seen)), devices=lanes)
    changes = process_environment(
        os.environ, engine_traits(kind.engine), gpus=own, rendezvous=kind.rendezvous, placement=placement
    )
    for unset in changes.unset:
        del os.environ[unset]
    os.environ.update(changes.values)
    from scalestudy.engines.group import join
    from scalestudy.engines.tensorflow.setup import set_up

    with _before_it_computes():
        set_up(
            threads=len(cores.granted()), at_once=max(2, lanes),
            cpu_devices=lanes if device == "cpu" else 1, deterministic=False,
        )  # fmt: skip
        with _secret(placement) if kind.rendezvous and kind.rendezvous.secret else contextlib.nullcontext():
            found = join(start.strategy, placement, workers=start.workers, device=device)
    from scalestudy.engines.tensorflow.strategies.multiworker import outside_scope

    return outside_scope(found)


@contextlib.contextmanager
def _before_it_computes() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        words = str(error)
        if "initializ" not in words and "program startup" not in words:
            raise
        raise UserError(
            "`scalestudy.workers()` before TensorFlow computes anything",
            f"a process that has computed: {words.splitlines()[0].rstrip('.')}",
            "Call it right after the imports, before data and models are made.",
        ) from error


@contextlib.contextmanager
def _secret(placement: Placement) -> Iterator[None]:
    """Within, the processes have a secret: from their launcher, or in a folder that their nodes share."""
    if placement.size == 1 or os.environ.get(SECRET):
        yield
        return
    job = [
        os.environ.get(name, "") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "PBS_JOBID")
    ]
    name = "".join(each if each.isalnum() else "-" for each in "-".join(filter(None, job)))
    folder = Path.cwd() / f".scalestudy-{name or 'run'}"
    folder.mkdir(exist_ok=True)
    try:
        with secret_set(folder, placement):
            yield
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()
