"""Running points on this machine, one after another."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalestudy import modules
from scalestudy.launch.local import reserve
from scalestudy.launch.local.workers import Command, Workers
from scalestudy.machine import cores, devices
from scalestudy.study.point import Point
from scalestudy.study.records import Failure, Progress
from scalestudy.study.store import RunFolder, StudyFolder

POLL = 0.25
TAIL_LINES = 15
FOREIGN = ("OMPI_", "PMIX_", "PMI_", "PALS_", "SLURM_", "TF_CONFIG")
"""Variables of other launchers, which workers of ours must not see."""

INTERRUPTED = Failure(rank=None, exit_code=None, reason="interrupted by the user", cancelled=True)

Watch = Callable[[RunFolder, Progress | None], None]


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended.

    Attributes:
        point: What was run.
        ok: Whether it left a result.
        failure: Why not.
    """

    point: Point
    ok: bool
    failure: Failure | None = None


def run_points(folder: StudyFolder, points: Sequence[Point], *, watch: Watch) -> list[RunOutcome]:
    """Run points one after another; a failed one does not keep the others from running.

    Args:
        folder: Where the runs are kept.
        points: What to run, each with its prepared data set and split.
        watch: Called with a run and its progress while it is alive.

    Raises:
        KeyboardInterrupt: On Ctrl-C or SIGTERM, after all workers have ended.
    """
    with terminable():
        return [run_point(folder, point, watch=watch) for point in points]


def run_point(folder: StudyFolder, point: Point, *, watch: Watch) -> RunOutcome:
    """Start the workers of one point, wait for them, and say how it ended."""
    steps = run_steps(folder, point)
    while True:
        try:
            run = next(steps)
        except StopIteration as end:
            outcome: RunOutcome = end.value
            return outcome
        try:
            watch(run, run.progress())
        except KeyboardInterrupt as interrupt:
            steps.throw(interrupt)


def run_steps(folder: StudyFolder, point: Point) -> Generator[RunFolder, None, RunOutcome]:
    """Run one point: its run is given a first time when it has begun, then a few times a second.

    Raises:
        KeyboardInterrupt: If one was thrown in, after all workers have ended.
    """
    processes = point.processes
    wanted = point.launch.cpus_per_worker * (1 if point.traits.one_device else point.workers)
    with (
        reserve.ports(processes + 1) as port,
        reserve.cores(cores.granted(), wanted) as (cpus, alone),
    ):
        if not alone and point.oversubscribed is None and point.launch.device != "gpu" and not devices.gpus():
            point = point.on(oversubscribed="cores shared with another study")
        run = interrupted_run(folder, point) or folder.new_run(point)
        commands = [
            worker_command(
                run.path, rank, processes, port, _share(cpus, rank, processes), os.environ, run.log(rank)
            )
            for rank in range(processes)
        ]
        with Workers(commands) as workers:
            try:
                while workers.running() and workers.first_failure() is None:
                    yield run
                    time.sleep(POLL)
            except (KeyboardInterrupt, GeneratorExit):
                workers.stop()
                run.write_failure(INTERRUPTED)
                raise
            failed = workers.first_failure()
    failure = _failure(run, failed)
    if failure is not None:
        run.write_failure(failure)
    yield run
    return RunOutcome(point, failure is None, failure)


def interrupted_run(folder: StudyFolder, point: Point) -> RunFolder | None:
    """The newest run of a point, made ours, if it can go on: it was interrupted and has a checkpoint.

    A run that failed on its own starts anew; so does one whose settings have changed, or that a queue
    has run elsewhere: its timing would mix two things.
    """
    for run in folder.runs(point.name)[-1:]:
        failure = run.failure()
        if (
            run.checkpoint.exists()
            and (failure is None or failure.rank is None)
            and run.point().same_as(point)
            and not (run.path / "job.json").exists()
        ):
            run.write_owner()
            run.stop.unlink(missing_ok=True)
            (run.path / "failure.json").unlink(missing_ok=True)
            return run
    return None


def worker_command(
    run: Path, rank: int, size: int, port: int, cpus: Sequence[int], environment: Mapping[str, str], log: Path
) -> Command:
    """The command of one worker: the same for every launcher, with its place in torchrun's variables.

    Args:
        run: Folder of the run, which is also the working folder.
        rank: Rank of the process.
        size: Processes of the run.
        port: First port of the run.
        cpus: Cores for this process.
        environment: Variables to pass on.
        log: File for its output.
    """
    values = {key: value for key, value in environment.items() if not key.startswith(FOREIGN)}
    values |= {
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost", "MASTER_PORT": str(port),
        "SCALESTUDY_LAUNCHER": str(os.getpid()), "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": str(max(1, len(cpus))),
    }  # fmt: skip
    if "PYTHONPATH" in values:  # relative entries mean this folder, not the run's
        values["PYTHONPATH"] = os.pathsep.join(
            os.path.abspath(p) for p in values["PYTHONPATH"].split(os.pathsep)
        )
    arguments = [sys.executable, "-m", modules.WORKER, str(run.absolute())]
    return Command(arguments, values, cpus, log.absolute(), run.absolute())


def _share(cpus: Sequence[int], rank: int, processes: int) -> list[int]:
    each = len(cpus) // processes
    return sorted(set(cpus[rank * each : (rank + 1) * each]))


def _failure(run: RunFolder, failed: tuple[int, int] | None) -> Failure | None:
    if failed is None:
        if run.result() is not None:
            return None
        if run.stop.exists() and run.checkpoint.exists():
            return Failure(rank=None, exit_code=None, reason="stopped on request; run it again to go on")
        return Failure(
            rank=0, exit_code=0, reason="all workers ended, but there is no result", tail=_tail(run, 0)
        )
    rank, code = failed
    name = signal.Signals(-code).name if code < 0 else None
    reason = (
        f"rank {rank} ended with exit code {code}" if name is None else f"rank {rank} was ended by {name}"
    )
    if name == "SIGKILL":
        reason += " (often: out of memory)"
    return Failure(
        rank=rank, exit_code=code if code >= 0 else None, signal=name, reason=reason, tail=_tail(run, rank)
    )


def _tail(run: RunFolder, rank: int) -> list[str]:
    try:
        lines = run.log(rank).read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [line.rstrip() for line in lines if line.strip()][-TAIL_LINES:]


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Within, SIGTERM and SIGHUP interrupt as Ctrl-C does, so that workers are ended first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
