"""The worker processes of one run, started and ended together."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from scalestudy.hardware.cores import only_on
from scalestudy.launch.environments import python_of, variables_of
from scalestudy.study.run_folder import RunFolder
from scalestudy.util import modules

FOREIGN = (
    "OMPI_", "PMIX_", "PMI_", "PALS_", "SLURM_", "TF_CONFIG", "SCALESTUDY_SUBMISSION", "SCALESTUDY_SCRIPT_",
)  # fmt: skip
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


@dataclass
class WorkerProcesses:
    """The processes of a run. As a context manager, it leaves none running.

    Attributes:
        commands: Commands to start, by rank.
        spared: Returns the ranks that a signal may end without failing the run, unless it is all of them.
    """

    commands: Sequence[Command]
    spared: Callable[[], Sequence[int]] = tuple
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _ends: dict[int, float] = field(default_factory=dict)

    def __enter__(self) -> "WorkerProcesses":
        try:
            for rank, command in enumerate(self.commands):
                self._start(rank, command)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, rank: int, command: Command) -> None:
        with contextlib.ExitStack() as held:
            log = None
            if command.log is not None:
                command.log.parent.mkdir(parents=True, exist_ok=True)
                log = held.enter_context(open(command.log, "ab"))
            held.enter_context(only_on(command.cpus))
            process = subprocess.Popen(
                list(command.arguments), env=dict(command.environment), cwd=command.folder,
                stdin=subprocess.DEVNULL, stdout=log, stderr=None if log is None else subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        self._processes.append(process)
        threading.Thread(target=self._wait, args=(rank, process), daemon=True).start()

    def _wait(self, rank: int, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._ends[rank] = time.monotonic()

    def running(self) -> bool:
        """Whether any worker is still running."""
        return len(self._ends) < len(self._processes)

    def ended(self, rank: int) -> bool:
        """Whether the worker of this rank has ended."""
        return rank in self._ends

    def ended_at(self, rank: int) -> float:
        """Return the Unix time at which the worker of this rank ended."""
        return time.time() - (time.monotonic() - self._ends[rank])

    def first_failure(self) -> tuple[int, int] | None:
        """Return rank and exit code (negative: a signal) of the worker that failed first, or None."""
        codes = {rank: self._processes[rank].returncode for rank in self._ends.copy()}
        spared = self.spared()
        lost = [rank for rank in spared if codes.get(rank, 0) < 0]
        if len(lost) == len(spared):
            lost = []
        failed = [rank for rank, code in codes.items() if code != 0 and rank not in lost]
        first = min(failed, key=lambda rank: self._ends[rank], default=None)
        return None if first is None else (first, codes[first])

    def wait(
        self, poll: float = POLL, meanwhile: Callable[[], object] = lambda: None
    ) -> tuple[int, int] | None:
        """Wait until all workers have ended or one has failed; return `first_failure`.

        The workers are checked every `poll` seconds, and `meanwhile` is called between two checks.
        """
        while self.running() and self.first_failure() is None:
            time.sleep(poll)
            meanwhile()
        return self.first_failure()

    def stop(self) -> None:
        """End all workers and their children: ask them first, then kill them.

        The worker is a child of the supervisor started here. The child is killed first, so that it has
        released its device when the supervisor ends and before another process starts there.
        """
        for end, seconds in ((_ask, GRACE), (_kill_below, KILLED_WITHIN), (_kill, GRACE)):
            for process in self._processes:
                end(process.pid)
            deadline = time.monotonic() + seconds
            while self.running() and time.monotonic() < deadline:
                time.sleep(0.02)
            if not self.running():
                # A worker may have left children in its process group.
                for process in self._processes:
                    _kill(process.pid)
                return


def _ask(leader: int) -> None:
    _send(leader, signal.SIGHUP)  # SIGTERM asks a run to stop at a checkpoint: see launch/supervise.py


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
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def started_in(folder: str | None, command: Command) -> Command:
    """Return a Python command changed to run in the virtual environment `folder`; unchanged for None."""
    if folder is None:
        return command
    arguments = [python_of(folder), *command.arguments[1:]]
    return replace(command, arguments=arguments, environment=variables_of(folder, command.environment))


def worker_commands(
    run: RunFolder, size: int, port: int, cpus: Sequence[int], environment: Mapping[str, str]
) -> list[Command]:
    """Return the commands of all workers of a run, by rank; `cpus` are the cores of all workers."""
    return [
        worker_command(run.path, rank, size, port, share(cpus, rank, size), environment, run.log(rank))
        for rank in range(size)
    ]


def worker_command(
    run: Path, rank: int, size: int, port: int, cpus: Sequence[int], environment: Mapping[str, str], log: Path
) -> Command:
    """Return the command of one worker of `size`, whose place is given by torchrun's variables."""
    values = {key: value for key, value in environment.items() if not key.startswith(FOREIGN)}
    values |= {
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost", "MASTER_PORT": str(port),
        "SCALESTUDY_LAUNCHER": str(os.getpid()), "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": str(max(1, len(cpus))),
    }  # fmt: skip
    if "PYTHONPATH" in values:  # relative entries refer to the current folder, not the run's
        values["PYTHONPATH"] = os.pathsep.join(
            os.path.abspath(p) for p in values["PYTHONPATH"].split(os.pathsep)
        )
    arguments = [sys.executable, "-m", modules.WORKER, str(run.absolute())]
    return Command(arguments, values, cpus, log.absolute(), run.absolute())


def share(cpus: Sequence[int], rank: int, processes: int) -> list[int]:
    """Return the cores of a rank out of those of all processes."""
    each = len(cpus) // processes
    return sorted(set(cpus[rank * each : (rank + 1) * each]))
