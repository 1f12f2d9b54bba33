"""The processes of a user's own script on this machine: rank 0 at the terminal, the others in their logs."""

import contextlib
import shlex
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy import modules
from scalestudy.cluster.environment import library_changes
from scalestudy.launch.base import Note
from scalestudy.launch.local.reserve import granted, reserved_gpus
from scalestudy.launch.local.run import failure_of_end
from scalestudy.launch.local.workers import Command, Workers, worker_commands
from scalestudy.machine import devices
from scalestudy.machine.memory import oom_kills
from scalestudy.study.point import Point
from scalestudy.study.records import Failure
from scalestudy.study.run_folder import RunFolder, write_point

PREFIX = "SCALESTUDY_SCRIPT_"


@dataclass(frozen=True)
class Script:
    """What is started.

    Attributes:
        point: Strategy, workers and what they run under.
        file: The script, as named.
        arguments: Its own.
    """

    point: Point
    file: str
    arguments: tuple[str, ...] = ()

    def variables(self) -> dict[str, str]:
        """By which its processes know what they are; see `script_start`."""
        point = self.point
        return {
            f"{PREFIX}STRATEGY": point.implementation,
            f"{PREFIX}WORKERS": str(point.workers),
            f"{PREFIX}DEVICE": point.launch.device,
        }


def run_script(script: Script, folder: Path) -> Generator[Note, None, Failure | None]:
    """Run a script's processes to their end; why it failed, or None. Notes say whom it waits for.

    Args:
        script: What is started.
        folder: For logs and how the processes ended; exists.

    Raises:
        KeyboardInterrupt: On Ctrl-C, after all processes have ended.
        RunError: If there are no ports.
    """
    with contextlib.ExitStack() as held:
        gpus = yield from reserved_gpus(held, script.point)
        point, port, cpus, environment = held.enter_context(granted(script.point, gpus))
        if point.oversubscribed:
            yield Note(f"Oversubscribed: {point.oversubscribed}; it will be slower than it could be.")
        write_point(folder / "point.json", point)
        kills = oom_kills()
        run = RunFolder(folder)
        with Workers(commands(script, run, port, cpus, environment)) as workers:
            failed = workers.wait()
    return None if failed is None else failure_of_end(run, failed, workers.ended_at(failed[0]), kills)


def commands(
    script: Script, run: RunFolder, port: int, cpus: Sequence[int], environment: Mapping[str, str]
) -> list[Command]:
    """The command of each process. Rank 0 keeps this process's output."""
    own: list[Command] = []
    for rank, worker in enumerate(worker_commands(run, script.point.processes, port, cpus, environment)):
        variables = library_changes(worker.environment).applied(worker.environment) | script.variables()
        variables |= {"KERAS_BACKEND": "tensorflow"}
        variables.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        if rank == 0:
            variables.pop("PYTHONUNBUFFERED", None)
        arguments = [
            sys.executable, "-P", "-m", modules.SCRIPT_PROCESS,
            str(run.path.absolute()), script.file, *script.arguments,
        ]  # fmt: skip
        log = None if rank == 0 else worker.log
        own.append(Command(arguments, variables, worker.cpus, log, Path.cwd()))
    return own


def start_lines(script: Script) -> list[str]:
    """What would be started, a line each, and how srun would start the same."""
    point = script.point
    traits = point.traits
    own = shlex.join([script.file, *script.arguments])
    each = f"{point.launch.cpus_per_worker} core{'s' * (point.launch.cpus_per_worker > 1)} a worker"
    lines = [f"{point.workers} workers by {point.implementation}, {each}, device {point.launch.device}"]
    for rank in range(point.processes):
        log = "this terminal" if rank == 0 else f"its log (rank-{rank}.log)"
        lines.append(f"rank {rank}: python {own}  (output: {log})")
    lines.append(f"Through Slurm: {slurm_line(script) if traits.spans_nodes else NO_SRUN}")
    return lines


NO_SRUN = "take horovod or multiworker, which have a process for each worker"


def slurm_line(script: Script) -> str:
    """The line of a job script that starts the same workers by srun."""
    point = script.point
    variables = f"{PREFIX}STRATEGY={point.implementation}"
    on_gpus = point.launch.device == "gpu" or (point.launch.device == "auto" and devices.gpus() > 0)
    gpus = " --gpus-per-task=1" if on_gpus else ""
    own = shlex.join(["python", script.file, *script.arguments])
    cpus = point.launch.cpus_per_worker
    return (
        f"{variables} srun --kill-on-bad-exit=1 --ntasks={point.workers} --cpus-per-task={cpus}{gpus} {own}"
    )
