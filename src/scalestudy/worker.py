"""`python -m scalestudy.worker RUN_DIR`: the command that every launcher starts, once per process."""

from __future__ import annotations

import io
import os
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scalestudy.hardware.own_process import exit_at_once
from scalestudy.util.errors import RunError, ScalestudyError, UserError
from scalestudy.util.registry import Registry

if TYPE_CHECKING:
    from scalestudy.cluster.placement import Placement
    from scalestudy.measure.clock import PhaseClock
    from scalestudy.plugins.traits import Traits
    from scalestudy.store.run_folder import RunFolder

    DeviceSetting = Literal["auto", "cpu", "gpu"]

MODES: Registry[Callable[..., None]] = Registry("scalestudy.modes")
"""Functions that a worker calls instead of training, with the same arguments, if `NAME.json` is beside
`point.json`."""
COMMANDS: Registry[Callable[[Path, Placement], int]] = Registry(
    "scalestudy.rank_commands"
)
"""Functions that a worker calls in a folder that is not a run: with `NAME.json` and without `point.json`."""
INTERFACES = ("HOROVOD_GLOO_IFACE", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
"""Variables by which users set the network interface of Gloo and NCCL."""
DROPPED = "SCALESTUDY_LIBRARY_FOLDERS_DROPPED"
"""Variable with the folders that a restart has dropped from LD_LIBRARY_PATH."""


def train_rank(folder: RunFolder, placement: Placement, clock: PhaseClock) -> int:
    """Compute one rank's part of a run, or what its mode asks for instead; return the exit code."""
    from scalestudy.cluster.private_files import meeting_in, secret_set
    from scalestudy.cluster.resolve import PROGRESS_TIMEOUT
    from scalestudy.config.task_sources import refuse_edited
    from scalestudy.measure.watchdog import Watchdog
    from scalestudy.tasks.out_of_memory import is_out_of_memory, out_of_memory

    point = folder.point()
    # A task file edited since the study was expanded would be another point.
    refuse_edited(point)
    watchdog = Watchdog(
        folder,
        placement.rank,
        placement.size,
        clock.heartbeat,
        point.launch.progress_timeout,
    )
    # Before the framework is imported, which may hang on a shared file system.
    watchdog.start()
    os.environ[PROGRESS_TIMEOUT] = str(point.launch.progress_timeout)
    device, gpus = take_part(
        placement,
        point.traits,
        point.workers,
        point.launch.device,
        point.launch.cpus_per_worker,
    )
    rendezvous = point.traits.rendezvous
    with clock.phase("framework"):
        mode = _first_named(MODES.names(), folder.path)
        from scalestudy.training.device_setup import OwnPart
        from scalestudy.training.rank_run import run_asynchronous
        from scalestudy.training.rank_run import run_synchronous as synchronous

        run: Callable[..., None] = synchronous
        if not point.traits.synchronous:
            run = run_asynchronous
        if mode is not None:
            run = MODES.get(mode)
    try:
        secret: AbstractContextManager[Any] = nullcontext()
        if rendezvous and rendezvous.secret:
            secret = secret_set(folder.path, placement)
        with secret, meeting_in(folder.path, placement):
            run(OwnPart(folder, point, placement, clock, device, gpus))
    except Exception as error:
        if not isinstance(error, ScalestudyError):
            watchdog.failed()
        if is_out_of_memory(error):
            raise out_of_memory(error, point.train) from error
        raise
    return 0


def main(
    arguments: list[str],
    train: Callable[[RunFolder, Placement, PhaseClock], int] = train_rank,
) -> int:
    """Compute this process's part of a run. All settings are in RUN_DIR and the environment.

    Args:
        arguments: RUN_DIR.
        train: What a rank does, below its supervisor.

    Returns:
        The exit code.
    """
    if len(arguments) != 1:
        print("usage: python -m scalestudy.worker RUN_DIR", file=sys.stderr)
        return 2
    try:
        return _take_rank(Path(arguments[0]), train)
    except ScalestudyError as error:
        print(f"scalestudy: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except SystemExit as error:
        # From a task file; exit code 0 would mean that the work is done.
        from scalestudy.launch.supervise import exit_code_of

        traceback.print_exc()
        return exit_code_of(error) or 1
    except Exception:
        traceback.print_exc()
        return 1


def _take_rank(
    path: Path, train: Callable[[RunFolder, Placement, PhaseClock], int]
) -> int:
    join_network()  # before anything starts a thread
    import psutil

    from scalestudy.cluster.resolve import resolve
    from scalestudy.measure.clock import PhaseClock

    clock = PhaseClock(psutil.Process().create_time())
    die_with_launcher()
    placement = resolve(os.environ)
    if not path.is_dir():
        raise UserError(
            "the folder of a run, seen by all nodes",
            f"{str(path)!r}, which is not a folder on {socket.gethostname()}",
            "Keep studies on a file system that the nodes share.",
        )
    # From here on, what fails is in the log of this rank.
    _take_output(path, placement)
    command = _first_named(COMMANDS.names(), path)
    if command is not None:
        from scalestudy.cluster.private_files import meeting_in, secret_set

        with secret_set(path, placement), meeting_in(path, placement):
            return COMMANDS.get(command)(path, placement)
    from scalestudy.launch.supervise import supervise
    from scalestudy.store.run_folder import RunFolder

    folder = RunFolder(path, os.environ.get("SCALESTUDY_SUBMISSION", ""))
    folder.refuse_other_job()
    return supervise(folder, placement.rank, lambda: train(folder, placement, clock))


def _first_named(names: Sequence[str], folder: Path) -> str | None:
    """Return the first of these names with a file `NAME.json` in the folder, or None."""
    for name in names:
        if (folder / f"{name}.json").exists():
            return name
    return None


def take_part(
    placement: Placement,
    strategy: Traits,
    workers: int,
    device: DeviceSetting,
    cpus_per_worker: int | None = None,
) -> tuple[str, list[str]]:
    """Take this process's cores and GPUs, and set the environment for its framework.

    If the launcher has granted more cores, the process is pinned to `cpus_per_worker` cores for each worker.

    Returns:
        "cpu" or "gpu", and the names of the GPUs that the process computes on.

    Raises:
        UserError: If the placement contradicts the strategy.
        RunError: If a GPU is missing.
    """
    from scalestudy.cluster.placement import check_placement
    from scalestudy.cluster.worker_environment import (
        assigned_gpus,
        device_of,
        own_gpus,
        process_environment,
        refuse_missing,
    )
    from scalestudy.hardware.devices import visible_gpus
    from scalestudy.plugins.engines import engine_traits

    check_placement(placement, strategy=strategy, workers=workers)
    seen = visible_gpus(os.environ)
    assigned = assigned_gpus(os.environ)
    used = device_of(device, assigned, seen)
    if used == "gpu":
        refuse_missing(assigned, seen)
        check_placement(
            placement,
            strategy=strategy,
            workers=workers,
            gpus=len(seen),
        )
    devices = strategy.workers_at_once(workers)
    if cpus_per_worker is not None:
        _pin(placement, used, devices, cpus_per_worker)
    gpus: list[str] = []
    if used == "gpu":
        place = placement.gpu_place(len(seen))
        gpus = own_gpus(os.environ, seen, local_rank=place, devices=devices)
    changes = process_environment(
        os.environ,
        engine_traits(strategy.engine),
        gpus=gpus,
        rendezvous=strategy.rendezvous,
        placement=placement,
    )
    for name in changes.unset:
        print(f"scalestudy: {name} is unset for {strategy.name}", file=sys.stderr)
        del os.environ[name]
    os.environ.update(changes.values)
    return used, gpus


def _take_output(path: Path, placement: Placement) -> None:
    from scalestudy.cluster.worker_environment import keeps_own_log
    from scalestudy.store.run_folder import RunFolder
    from scalestudy.util.files import without_following

    if not keeps_own_log(placement, os.environ):
        return
    log = RunFolder(path).log(placement.rank)
    print(
        f"scalestudy: rank {placement.rank} of {placement.size} on {socket.gethostname()}: {log}",
        flush=True,
    )
    with open(log, "ab", opener=without_following) as file:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            # By the descriptor, so that libraries write there, too.
            os.dup2(file.fileno(), stream.fileno())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)


def _pin(
    placement: Placement,
    device: str,
    devices: int,
    cpus_per_worker: int,
) -> None:
    """Pin this process to its own cores, near its GPUs, if the launcher has granted more."""
    from scalestudy.cluster.worker_environment import own_cores
    from scalestudy.hardware import cores
    from scalestudy.hardware.cores import core_by_core
    from scalestudy.hardware.devices import visible_gpus

    if "SCALESTUDY_LAUNCHER" in os.environ:
        return
    of_node = devices * placement.local_size
    near = []
    if device == "gpu":
        near = [gpu.cpus for gpu in visible_gpus(os.environ)][:of_node]
    if len(near) < of_node:  # each process sees only its own
        near = []
    granted = cores.granted()
    if near:
        granted = core_by_core(granted)
    share = own_cores(granted, cpus_per_worker * devices, placement, near)
    if share is not None:
        cores.pin_to(share)
    os.environ.setdefault("OMP_NUM_THREADS", str(len(cores.granted())))


def join_network() -> None:
    """Enter the run's own network, if the launcher has created one.

    Raises:
        RunError: If it cannot be entered.
    """
    holder = os.environ.get("SCALESTUDY_NETWORK", "")
    if not holder:
        return
    from scalestudy.hardware.private_network import enter_network

    for name in INTERFACES:
        if os.environ.get(name, "lo") != "lo":
            print(
                f"scalestudy: {name}=lo, not {os.environ[name]}: the run's own network has only that",
                file=sys.stderr,
            )
            os.environ[name] = "lo"
    try:
        enter_network(int(holder))
    except (OSError, ValueError) as error:
        raise RunError(
            f"the run's own network, which process {holder} holds",
            str(error),
            "open_ports = true under [launch] runs without it; others may then reach the workers' ports.",
        ) from error


def die_with_launcher() -> None:
    """Make the kernel kill this process when the local launcher ends (Linux only)."""
    parent = os.environ.get("SCALESTUDY_LAUNCHER")
    if parent is not None:
        from scalestudy.util.child_process import end_with

        end_with(int(parent))


def _load_own_libraries() -> None:
    """Restart the process if it would load a module's CUDA: the loader reads its path only at the start.

    It is restarted once: a Python that a script of the site starts may get the same folders again.
    """
    from scalestudy.hardware.installed import library_path

    path = library_path(os.environ)
    folders = os.pathsep.join(path.dropped)
    if folders and folders != os.environ.get(DROPPED):
        words = f"scalestudy: not in LD_LIBRARY_PATH, for the packages' CUDA: {folders}"
        print(words, file=sys.stderr, flush=True)
        variables = path.applied(os.environ) | {DROPPED: folders}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], variables)


if __name__ == "__main__":
    _load_own_libraries()
    exit_at_once(main(sys.argv[1:]))
