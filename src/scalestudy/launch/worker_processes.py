"""The worker processes of one run, started and ended together."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from scalestudy.hardware.cores import pinned_to, share_of_others, use_by_others
from scalestudy.launch.environments import python_of, variables_of
from scalestudy.store.run_folder import RunFolder
from scalestudy.util import modules
from scalestudy.util.files import make_inside, without_following

FOREIGN = (
    "OMPI_",
    "PMIX_",
    "PMI_",
    "PALS_",
    "SLURM_",
    "TF_CONFIG",
    "SCALESTUDY_SUBMISSION",
    "SCALESTUDY_SCRIPT_",
)
"""Prefixes of variables of other launchers, which are removed from the workers' environment."""
POLL = 0.25
"""Seconds between two checks of the workers."""
GRACE = 5.0
"""Seconds between asking a worker to end and killing it."""
KILLED_WITHIN = 2.0
"""Seconds that a killed worker may take to disappear."""


@dataclass(frozen=True)
class Command:
    """A process to start.

    Attributes:
        arguments: Program and arguments.
        environment: All environment variables.
        cpus: Cores it may run on; empty for no restriction.
        log: File for its output; None to share this process's output.
        folder: Working directory.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]
    cpus: Sequence[int]
    log: Path | None
    folder: Path


class ProcessGroup:
    """The processes of a run, wherever they are. As a context manager, it leaves none running.

    Attributes:
        size: Number of ranks.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._ends: dict[int, tuple[float, int]] = {}

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start all processes."""
        raise NotImplementedError

    def stop(self) -> None:
        """End all processes and their children."""
        raise NotImplementedError

    def lost(self) -> str:
        """Return why a machine of the run was lost, with its name; "" if none was."""
        return ""

    def others(self) -> float:
        """Return the share of its cores that other programs used, once it has ended."""
        return 0.0

    def _end(self, rank: int, code: int) -> None:
        self._ends[rank] = time.monotonic(), code

    def running(self) -> bool:
        """Whether any process is still running."""
        return len(self._ends) < self.size

    def ended(self, rank: int) -> bool:
        """Whether the process of this rank has ended."""
        return rank in self._ends

    def ended_at(self, rank: int) -> float:
        """Return the Unix time at which the process of this rank ended."""
        return time.time() - (time.monotonic() - self._ends[rank][0])

    def ends(self) -> dict[int, int]:
        """Return the exit codes (negative: a signal) of the ranks that have ended, in their order."""
        # A copy: the threads that wait for processes add to it meanwhile.
        ends = sorted(self._ends.copy().items(), key=lambda end: end[1])
        return {rank: code for rank, (_, code) in ends}

    def first_failure(self) -> tuple[int, int] | None:
        """Return rank and exit code (negative: a signal) of the process that failed first, or None."""
        for rank, code in self.ends().items():
            if code != 0:
                return rank, code
        return None

    def wait(self) -> tuple[int, int] | None:
        """Wait until all processes have ended or one has failed; return `first_failure`."""
        while self.running() and self.first_failure() is None:
            time.sleep(POLL)
        return self.first_failure()


class WorkerProcesses(ProcessGroup):
    """Processes of a run on this machine.

    Args:
        commands: Commands to start, by rank.
        watched: Cores on which the use by other programs is measured.
    """

    def __init__(
        self,
        commands: Sequence[Command],
        watched: Sequence[int] = (),
    ) -> None:
        super().__init__(len(commands))
        self._commands, self._watched = commands, watched
        self._before = use_by_others(watched) if watched else None
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start all workers."""
        for rank, command in enumerate(self._commands):
            self._start(rank, command)

    def others(self) -> float:
        """Return the share of the watched cores that other programs used."""
        if self._before is None:
            return 0.0
        return share_of_others(self._before, self._watched)

    def _start(self, rank: int, command: Command) -> None:
        with contextlib.ExitStack() as held:
            log = None
            if command.log is not None:
                make_inside(command.log.parent)
                log = held.enter_context(
                    open(command.log, "ab", opener=without_following)
                )
            # A child inherits the cores of the thread that starts it, so that it is bound before its first line.
            held.enter_context(pinned_to(command.cpus))
            errors = None
            if log is not None:
                errors = subprocess.STDOUT
            process = subprocess.Popen(
                list(command.arguments),
                env=dict(command.environment),
                cwd=command.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=errors,
                # Out of the terminal's process group: Ctrl-C reaches the launcher alone.
                start_new_session=True,
            )
        self._processes.append(process)
        threading.Thread(
            target=self._wait,
            args=(rank, process),
            daemon=True,
        ).start()

    def _wait(self, rank: int, process: subprocess.Popen[bytes]) -> None:
        self._end(rank, process.wait())

    def stop(self) -> None:
        """End all workers and their children: ask them first, then kill them.

        The worker is a child of the supervisor started here. The child is killed first, so that it has
        released its device when the supervisor ends and before another process starts there.
        """
        for end, seconds in (
            (_ask, GRACE),
            (_kill_below, KILLED_WITHIN),
            (_kill, GRACE),
        ):
            for process in self._processes:
                end(process.pid)
            if self._all_end_within(seconds):
                # A worker may have left children in its process group.
                for process in self._processes:
                    _kill(process.pid)
                return

    def _all_end_within(self, seconds: float) -> bool:
        """Wait until all processes have ended; return whether they have within these seconds."""
        deadline = time.monotonic() + seconds
        while len(self._ends) < len(self._processes):
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        return True


def _ask(leader: int) -> None:
    # Not SIGTERM, which asks a run to stop at a checkpoint: see launch/supervise.py.
    _send(leader, signal.SIGHUP)


def _kill(leader: int) -> None:
    _send(leader, signal.SIGKILL)


def _kill_below(leader: int) -> None:
    """Kill all descendants of a process, or the process itself if it has none."""
    import psutil

    with contextlib.suppress(psutil.Error):
        if below := psutil.Process(leader).children(recursive=True):
            for each in below:
                with contextlib.suppress(psutil.Error):
                    each.kill()
            return
    _kill(leader)


def _send(leader: int, number: int) -> None:
    # Each process leads a group of its own, since it was started in a session of its own.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def started_in(folder: str | None, command: Command) -> Command:
    """Return a Python command changed to run in the virtual environment `folder`; unchanged for None."""
    if folder is None:
        return command
    arguments = [python_of(folder), *command.arguments[1:]]
    return replace(
        command,
        arguments=arguments,
        environment=variables_of(folder, command.environment),
    )


def worker_commands(
    run: RunFolder,
    size: int,
    port: int,
    cpus: Sequence[int],
    environment: Mapping[str, str],
) -> list[Command]:
    """Return the commands of all workers of a run, by rank; `cpus` are the cores of all workers."""
    return [
        worker_command(run, rank, size, port, share(cpus, rank, size), environment)
        for rank in range(size)
    ]


def worker_command(
    run: RunFolder,
    rank: int,
    size: int,
    port: int,
    cpus: Sequence[int],
    environment: Mapping[str, str],
) -> Command:
    """Return the command of one worker of `size`, whose place is given by torchrun's variables."""
    values = {}
    for key, value in environment.items():
        if not key.startswith(FOREIGN):
            values[key] = value
    values |= {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
        # By it, a supervisor tells the launcher's signals from those of others.
        "SCALESTUDY_LAUNCHER": str(os.getpid()),
        # What a killed worker has printed must be in its log.
        "PYTHONUNBUFFERED": "1",
        # A worker without cores of its own would else start a thread for each of the machine.
        "OMP_NUM_THREADS": str(max(1, len(cpus))),
    }
    if "PYTHONPATH" in values:
        # Relative entries refer to the current folder, not the run's.
        entries = values["PYTHONPATH"].split(os.pathsep)
        values["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, entries))
    folder = run.path.absolute()
    arguments = [sys.executable, "-m", modules.WORKER, str(folder)]
    return Command(arguments, values, cpus, run.log(rank).absolute(), folder)


def share(cpus: Sequence[int], rank: int, processes: int) -> list[int]:
    """Return the cores of a rank out of those of all processes."""
    each = len(cpus) // processes
    return sorted(set(cpus[rank * each : (rank + 1) * each]))
