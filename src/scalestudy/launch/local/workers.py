"""The processes of one run: started together, ended together."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scalestudy.machine.cores import only_on

GRACE = 5.0
"""Seconds between asking a worker to end and ending it."""
KILLED_WITHIN = 2.0
"""Seconds for a worker that was killed to be gone."""


@dataclass(frozen=True)
class Command:
    """One process to start.

    Attributes:
        arguments: Program and arguments.
        environment: All of its variables.
        cpus: Cores it may run on; empty for no restriction.
        log: File that takes its output; None where it stays with that of this process.
        folder: Its working folder.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]
    cpus: Sequence[int]
    log: Path | None
    folder: Path


@dataclass
class Workers:
    """Owns the processes of a run. As a context manager it leaves none behind."""

    commands: Sequence[Command]
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _ends: dict[int, float] = field(default_factory=dict)

    def __enter__(self) -> "Workers":
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
        """Whether any worker is still at work."""
        return len(self._ends) < len(self._processes)

    def ended(self, rank: int) -> bool:
        """Whether this worker has ended."""
        return rank in self._ends

    def ended_at(self, rank: int) -> float:
        """Unix time at which this worker ended."""
        return time.time() - (time.monotonic() - self._ends[rank])

    def first_failure(self) -> tuple[int, int] | None:
        """Rank and exit code of the worker that failed first (negative: a signal), or None."""
        for rank in sorted(self._ends, key=lambda rank: self._ends[rank]):
            code = self._processes[rank].returncode
            if code != 0:
                return rank, code
        return None

    def stop(self) -> None:
        """End all workers and what they started, kindly first.

        A worker computes below the process that is known here: it is ended first, so that this one sees it
        gone, and with it what it held of a device, before anything else is started there.
        """
        for end, seconds in ((_ask, GRACE), (_kill_below, KILLED_WITHIN), (_kill, GRACE)):
            for process in self._processes:
                end(process.pid)
            deadline = time.monotonic() + seconds
            while self.running() and time.monotonic() < deadline:
                time.sleep(0.02)
            if not self.running():
                # A worker may have left children in its group; nothing of a run survives it.
                for process in self._processes:
                    _kill(process.pid)
                return


def _ask(leader: int) -> None:
    _send(leader, signal.SIGHUP)  # SIGTERM asks a run to stop at a checkpoint: see launch/supervise.py


def _kill(leader: int) -> None:
    _send(leader, signal.SIGKILL)


def _kill_below(leader: int) -> None:
    """Kill what a process has started; the process itself if that is nothing."""
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
