"""The processes of a user's own script on this machine: rank 0 at the terminal, the others in their logs."""

import contextlib
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalestudy.app.one_point import one_point_study
from scalestudy.cluster.environment import process_environment
from scalestudy.features.scripts import process
from scalestudy.features.scripts.join import DEVICE, STRATEGY, WORKERS, strategy_of
from scalestudy.hardware import devices
from scalestudy.hardware.memory import oom_kills
from scalestudy.launch.local.launcher import points_here, refuse_missing_software
from scalestudy.launch.local.reserve import granted, reserved_gpus
from scalestudy.launch.local.run import failure_of_end, terminable
from scalestudy.launch.local.workers import Command, WorkerProcesses, worker_commands
from scalestudy.study.engines import engine_traits
from scalestudy.study.point import Point
from scalestudy.study.run_folder import RunFolder, write_point
from scalestudy.util.errors import RunError, UserError

PLAIN = ("cnn", "digits")
"""A task and data that any study may have: nothing but the strategy and [launch] is used of this one."""
OnNote = Callable[[str], object]


@dataclass(frozen=True)
class Script:
    """What is started: a script with its arguments, under the strategy, workers and device of a point."""

    point: Point
    file: str
    arguments: tuple[str, ...] = ()

    def variables(self) -> dict[str, str]:
        """Variables by which its processes know what they are: see `join`."""
        point = self.point
        return {
            STRATEGY: point.implementation, WORKERS: str(point.workers), DEVICE: point.launch.device,
        }  # fmt: skip


def script_of(
    file: Path, arguments: Sequence[str], *, strategy: str, workers: int, launch: dict[str, Any]
) -> Script:
    """What is to be started, on this machine's devices and cores.

    `strategy`, and the keys in `launch` (device, cpus_per_worker), are those of a study.

    Raises:
        UserError: If it cannot be started so.
    """
    if not file.is_file():
        raise UserError(
            "a Python script", f"{file}, which is no file", "Name it first, its arguments after it."
        )
    kind = strategy_of(strategy)
    if kind.most_workers == 1 and workers > 1:
        raise UserError(
            f"one worker for strategy {strategy}", str(workers), "Take multiworker or horovod for several."
        )
    sweep = {"strategy": kind.name, "workers": workers, "seed": 0}
    (point,) = points_here(one_point_study(*PLAIN, sweep, {"launch": launch}))
    refuse_missing_software([point])
    return Script(
        point.model_copy(update={"name": file.name, "study": "scalestudy launch"}),
        str(file),
        tuple(arguments),
    )


def start_lines(script: Script) -> list[str]:
    """What would be started, a line each, and how srun would start the same."""
    point, command = script.point, shlex.join(["python", script.file, *script.arguments])
    cores = f"{point.launch.cpus_per_worker} core{'s' * (point.launch.cpus_per_worker > 1)} a worker"
    lines = [f"{point.workers} workers by {point.implementation}, {cores}, device {point.launch.device}"]
    for rank in range(point.processes):
        log = "this terminal" if rank == 0 else f"its log (rank-{rank}.log)"
        lines.append(f"rank {rank}: {command}  (output: {log})")
    if not point.traits.spans_nodes:
        return [*lines, "Through Slurm: take horovod or multiworker, which have a process for each worker"]
    on_gpus = point.launch.device == "gpu" or (point.launch.device == "auto" and devices.gpus() > 0)
    srun = (
        f"{STRATEGY}={point.implementation} srun --kill-on-bad-exit=1 --ntasks={point.workers} "
        f"--cpus-per-task={point.launch.cpus_per_worker}{' --gpus-per-task=1' * on_gpus} {command}"
    )
    return [*lines, f"Through Slurm: {srun}"]


def run_script(script: Script, logs: Path | None, on_note: OnNote) -> None:
    """Run a script's workers to their end; logs are temporary files when None, notes say what it waits for.

    Raises:
        RunError: If a worker fails; names the first, with its last lines where they were not printed. Or if
            there are no ports.
        KeyboardInterrupt: On Ctrl-C or SIGTERM, after all workers have ended.
    """
    if logs is not None:
        logs.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="scalestudy-launch-", dir=logs))
    run, last = RunFolder(folder), script.point.processes - 1
    if last:
        on_note(f"Logs of rank{'s 1 to' * (last > 1)} {last}: {folder / 'logs'}")
    with terminable(), contextlib.ExitStack() as held:
        waits = reserved_gpus(held, script.point)
        while True:  # for the runs that have them
            try:
                on_note(next(waits).text)
            except StopIteration as end:
                gpus = end.value
                break
        point, port, cpus, environment = held.enter_context(granted(script.point, gpus))
        if point.oversubscribed:
            on_note(f"Oversubscribed: {point.oversubscribed}; it will be slower than it could be.")
        write_point(folder / "point.json", point)
        kills = oom_kills()
        with WorkerProcesses(commands(script, run, port, cpus, environment)) as workers:
            failed = workers.wait()
    failure = failed and failure_of_end(run, failed, workers.ended_at(failed[0]), kills)
    if failure is None:
        if logs is None:
            shutil.rmtree(folder)
        return
    tail = "".join(f"\n  | {line}" for line in failure.tail) if failure.rank else ""
    raise RunError(
        "every worker to do its work",
        failure.reason.replace("the task's file", "the script") + tail + ("\n" if tail else ""),
        f"The log of each rank but 0 is in {folder / 'logs'}." if last else "Its output stands above.",
    )


def commands(
    script: Script, run: RunFolder, port: int, cpus: Sequence[int], environment: Mapping[str, str]
) -> list[Command]:
    """The command of each process: a worker's, but in this folder, and rank 0 with this process's output."""
    processes = []
    for rank, worker in enumerate(worker_commands(run, script.point.processes, port, cpus, environment)):
        changes = process_environment(worker.environment, engine_traits(script.point.engine), gpus=None)
        variables = changes.applied(worker.environment) | script.variables()
        if rank == 0:
            variables.pop("PYTHONUNBUFFERED", None)
        arguments = [
            sys.executable, "-P", "-m", process.__name__,
            str(run.path.absolute()), script.file, *script.arguments,
        ]  # fmt: skip
        log = None if rank == 0 else worker.log
        processes.append(Command(arguments, variables, worker.cpus, log, Path.cwd()))
    return processes
