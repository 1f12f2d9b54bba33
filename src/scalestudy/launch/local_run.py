"""One run on this machine, or on hosts that this machine reaches, from its reservation to its end."""

import contextlib
import math
import signal
import time
from collections.abc import Callable, Generator, Sequence

from scalestudy.config.point import Point
from scalestudy.hardware import cores as machine_cores
from scalestudy.hardware.own_process import oom_kills
from scalestudy.launch.interrupted_runs import interrupted_run
from scalestudy.launch.launcher import (
    Moved,
    Note,
    UnrecordedFailure,
)
from scalestudy.launch.reserve import grant, reserve_gpus
from scalestudy.launch.run_failures import (
    failure_of_end,
    failure_to_start,
    record_failure,
    was_removed,
)
from scalestudy.launch.stop_signal import StopSignal
from scalestudy.launch.worker_processes import (
    POLL,
    ProcessGroup,
    WorkerProcesses,
    started_in,
    worker_commands,
)
from scalestudy.measure.hang_detection import HangDetector
from scalestudy.store.records import Disturbance, Failure
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import RunError, ScalestudyError
from scalestudy.util.files import spare_space

LEFT_WITHIN = 25.0
"""Seconds that workers have after SIGTERM to write a checkpoint: less than Slurm's KillWait, 30 s."""
BUSY = 0.1
"""Share of a run's cores that other programs must use to be noted: its times are longer by about as much."""
Reserved = tuple[Point, Callable[[RunFolder], ProcessGroup]]
"""A point with what it needs reserved (oversubscribed if its cores are shared), and its run's processes."""
Reserve = Callable[
    [contextlib.ExitStack, StudyFolder, Point], Generator[Note, None, Reserved]
]
"""Reserves what a point needs until the stack is closed; yields notes while it waits."""
TELL_EVERY = 5.0
"""Seconds after which a `Moved` is yielded for a run without new progress: it may hang."""


def reserve_here(
    held: contextlib.ExitStack,
    folder: StudyFolder,
    point: Point,
) -> Generator[Note, None, Reserved]:
    """Reserve GPUs, cores and ports of this machine; notes are yielded while other studies hold the GPUs."""
    gpus = yield from reserve_gpus(held, point)
    own, port, cpus, environment = held.enter_context(grant(point, gpus))
    watched: Sequence[int] = []
    if not gpus:
        watched = cpus or machine_cores.granted()

    def processes(run: RunFolder) -> ProcessGroup:
        commands = worker_commands(run, own.processes, port, cpus, environment)
        return WorkerProcesses(
            [started_in(own.environment, command) for command in commands],
            watched=watched,
        )

    return own, processes


def run_steps(
    folder: StudyFolder,
    point: Point,
    reserve: Reserve = reserve_here,
    stop: StopSignal | None = None,
) -> Generator[Note | Moved | UnrecordedFailure, None, None]:
    """Run one point, which names its prepared data set and split, to its end.

    A run that cannot be started, or whose files cannot be written, raises no error, so that the next point
    can be run. `stop` is the handler of signals that stop the run; None if none are handled.

    Raises:
        KeyboardInterrupt: If it is thrown into the generator, after all workers have ended.
    """
    stop = stop or StopSignal()
    run: RunFolder | None = None
    try:
        # Holds the GPUs, cores and ports until the last worker has ended, however that comes about.
        with contextlib.ExitStack() as held:
            planned = point.oversubscribed
            point, start = yield from reserve(held, folder, point)
            if point.oversubscribed != planned:
                yield Note(
                    f"{point.name} is disturbed: {point.oversubscribed}. Its times do not count."
                )
            run = interrupted_run(folder, point) or folder.new_run(point)
            processes = start(run)
            failure = yield from _attempt(run, processes, stop)
            if failure is None:
                run.forget_signs()
                yield from _note_disturbance(run, point, processes.others())
    except (OSError, ScalestudyError) as error:
        failure = failure_to_start(error)
    if failure is not None:
        unwritten = record_failure(run, failure)
        if unwritten:
            if run is not None and not was_removed(run):
                reason = f"{failure.reason}; {unwritten}"
                failure = failure.model_copy(update={"reason": reason})
            yield UnrecordedFailure(point.name, failure)
    yield Moved(point.name)


def _note_disturbance(
    run: RunFolder,
    point: Point,
    share: float,
) -> Generator[Note, None, None]:
    """Record that other programs used this share of the run's cores, if it is enough to count."""
    if share < BUSY:
        return
    disturbance = Disturbance(share=share)
    run.write_disturbance(disturbance)
    yield Note(f"{point.name} is disturbed: {disturbance.words}.")


def _attempt(
    run: RunFolder,
    processes: ProcessGroup,
    stop: StopSignal,
) -> Generator[Note | Moved, None, Failure | None]:
    """Run the processes to their end, and return why the run failed; None if it did not."""
    # The kernel counts its kills; those since now are this run's.
    kills = oom_kills()
    # On a disk that fills up, room is kept for the record of how the run ended.
    with spare_space(run.path), processes as workers:
        try:
            # From here on, the first signal does not raise: the loop below polls for it.
            stop.awaited = True
            yield from _watch(run, workers, stop)
        except (KeyboardInterrupt, GeneratorExit):
            workers.stop()
            # The run may have finished before the signal was handled.
            if not run.result():
                record_failure(run, stop.failure(run))
            raise
        finally:
            stop.awaited = False
        # Before the others are ended, which would look like failures of their own.
        failed = workers.first_failure()
    # A lost host explains the ends of all its ranks, which look like failures of their own.
    lost = processes.lost()
    if lost and run.result() is None:
        return Failure(
            rank=None,
            exit_code=None,
            reason=f"{lost}; run it again to continue",
        )
    ended_at = 0.0
    if failed:
        ended_at = workers.ended_at(failed[0])
    failure = failure_of_end(run, failed, ended_at, kills)
    if failure and failed is None and stop.number and not run.hang():
        return stop.failure(run)
    return failure


def _watch(
    run: RunFolder,
    workers: ProcessGroup,
    stop: StopSignal,
) -> Generator[Note | Moved, None, None]:
    """Wait until the workers have ended, one has failed, or they must be ended from outside."""
    point = run.point()
    detector = HangDetector(run, workers.size, point.launch.progress_timeout)
    asked, deadline = False, math.inf
    last_yield, last_written = -math.inf, (0, 0)
    while workers.running() and workers.first_failure() is None:
        if was_removed(run):
            return
        written = _progress_written(run)
        if written != last_written or time.monotonic() - last_yield >= TELL_EVERY:
            last_yield, last_written = time.monotonic(), written
            yield Moved(point.name)
        time.sleep(POLL)
        hang = detector.check(time.monotonic())
        if hang:
            run.write_hang(hang)
            return
        if stop.number and not asked:
            asked = True
            # A folder that cannot be written to tells the workers nothing; a second Ctrl-C still ends them.
            with contextlib.suppress(OSError, RunError):
                run.ask_to_stop()
            if stop.number == signal.SIGTERM:
                # A machine that shuts down, or a queue around this process, kills it soon.
                deadline = time.monotonic() + LEFT_WITHIN
            yield Note(f"{point.name} stops at a checkpoint; Ctrl-C stops it at once.")
        if time.monotonic() > deadline:
            return


def _progress_written(run: RunFolder) -> tuple[int, int]:
    """Identify the progress record: it is replaced, so that the file differs even within a clock's tick."""
    try:
        found = (run.path / "progress.json").stat()
    except OSError:
        return 0, 0
    return found.st_ino, found.st_mtime_ns
