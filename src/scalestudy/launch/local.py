"""The local launcher, which runs one point after another on this machine."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path

from scalestudy.config.expand import expand
from scalestudy.config.file import Study
from scalestudy.config.point import Point
from scalestudy.config.settings import DEFAULT_LAUNCHER
from scalestudy.hardware import cores, devices
from scalestudy.hardware import cores as machine_cores
from scalestudy.hardware.no_gpus import driver_is_dead, why_unseen
from scalestudy.hardware.own_process import oom_kills
from scalestudy.launch.environments import refuse_missing_software
from scalestudy.launch.failures import (
    failure_of,
    failure_of_hang,
    first_cause,
    last_lines,
)
from scalestudy.launch.launcher import (
    Moved,
    Note,
    Options,
    Overview,
    Step,
    UnrecordedFailure,
)
from scalestudy.launch.reserve import grant, refuse_open_ports, reserve_gpus
from scalestudy.launch.supervise import cause_of_code
from scalestudy.launch.worker_processes import (
    POLL,
    ProcessGroup,
    WorkerProcesses,
    started_in,
    worker_commands,
)
from scalestudy.measure.hang_detection import HangDetector
from scalestudy.store.records import Disturbance, Failure
from scalestudy.store.run_folder import RunFolder, write_point
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import RunError, ScalestudyError, UserError
from scalestudy.util.files import spare_space


def failure_of_end(
    run: RunFolder, failed: tuple[int, int] | None, when: float, kills: int | None
) -> Failure | None:
    """Return why a run failed, after all its workers have ended; None if it did not.

    `failed` is the rank and the exit code (negative: a signal) of the worker that failed first as observed
    here, `when` the Unix time of that, and `kills` is `oom_kills` before the workers were started.
    """
    if was_removed(run):
        return Failure(
            rank=None,
            exit_code=None,
            reason=f"its folder was removed while it ran: {run.path}",
        )
    silence = run.hang()
    if silence is not None and run.result() is None:
        return failure_of_hang(run, silence)
    if failed is not None:
        causes = run.causes()
        if failed[0] not in {cause.rank for cause in causes}:
            # It has recorded none if its supervisor was killed as well.
            seen = cause_of_code(*failed, kills, unsaid="exit")
            causes.append(seen.model_copy(update={"time": when}))
        cause = first_cause(causes)
        assert cause
        return failure_of(run, cause)
    if run.result() is not None:
        return None
    if run.stop.exists() and run.stopped():
        why = run.stop.read_text()
        reason = (
            f"stopped on request{f' ({why})' if why else ''}; run it again to continue"
        )
        return Failure(rank=None, exit_code=None, reason=reason)
    reason = "all workers ended, but there is no result"
    return Failure(rank=0, exit_code=0, reason=reason, tail=last_lines(run, "rank-0"))


def failure_to_start(error: Exception) -> Failure:
    """Return the failure of a run that could not be started, or whose files are inaccessible."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return Failure(
            rank=None,
            exit_code=None,
            reason=f"it could not be run: {error.strerror}{where}",
        )
    return Failure(rank=None, exit_code=None, reason=f"it could not be run: {error}")


def record_failure(run: RunFolder | None, failure: Failure | None) -> str:
    """Write a failure into the run's folder; return why that was impossible, or ""."""
    if failure is None:
        return ""
    if run is None:
        return "it has no folder to say so"
    try:
        run.write_failure(failure)
    except OSError as error:
        return f"its folder cannot say so ({error.strerror or error})"
    return ""


def was_removed(run: RunFolder) -> bool:
    """Whether a run's folder was removed; False if it is only inaccessible at the moment."""
    try:
        os.stat(run.path / "point.json")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
"""Signals with which a person, a machine or the kernel out of memory ends a rank."""
LEFT_WITHIN = 25.0
"""Seconds that workers have after SIGTERM to write a checkpoint: less than Slurm's KillWait, 30 s."""
STOPPED_BY = {
    signal.SIGINT: "interrupted by Ctrl-C (SIGINT)",
    signal.SIGTERM: "stopped by SIGTERM",
    signal.SIGHUP: "stopped when its terminal was closed (SIGHUP)",
}


class StopSignal:
    """The handler of signals by which a user, a machine or a queue stops the runs of this process.

    The first signal asks the current run to stop at a checkpoint. A Ctrl-C after it stops the run at once.

    Attributes:
        number: Number of the first signal; 0 before.
        awaited: Whether a run is polling for the signal; otherwise the signal raises KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.number, self.awaited = 0, False

    def __call__(self, number: int, frame: object) -> None:
        """Handle a signal."""
        first = not self.number
        if first or number == signal.SIGINT:  # queues repeat their signals
            self.number = self.number or number
            if not (first and self.awaited):
                raise KeyboardInterrupt

    @property
    def exit_code(self) -> int:
        """Exit code of the command, as shells report it: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self.number or signal.SIGINT)

    def failure(self, run: RunFolder) -> Failure:
        """Return the failure of a run that was stopped by this signal."""
        reason = (
            STOPPED_BY.get(signal.Signals(self.number), "")
            if self.number
            else "interrupted by the user"
        )
        reason += "; run it again to continue" * run.checkpoint.exists()
        name = signal.Signals(self.number).name if self.number else None
        return Failure(
            rank=None, exit_code=None, signal=name, reason=reason, cancelled=True
        )


STOP = StopSignal()


BUSY = 0.1
"""Share of a run's cores that other programs must use to be noted: its times are longer by about as much."""


Held = tuple[Point, Callable[[RunFolder], ProcessGroup]]
"""A point with what it needs reserved (oversubscribed if its cores are shared), and its run's processes."""
Hold = Callable[[contextlib.ExitStack, StudyFolder, Point], Generator[Note, None, Held]]
"""Reserves what a point needs until the stack is closed; yields notes while it waits."""


def reserve_here(
    held: contextlib.ExitStack, folder: StudyFolder, point: Point
) -> Generator[Note, None, Held]:
    """Reserve GPUs, cores and ports of this machine; notes are yielded while other studies hold the GPUs."""
    gpus = yield from reserve_gpus(held, point)
    own, port, cpus, environment = held.enter_context(grant(point, gpus))
    watched = [] if gpus else cpus or machine_cores.granted()

    def processes(run: RunFolder) -> ProcessGroup:
        commands = worker_commands(run, own.processes, port, cpus, environment)
        return WorkerProcesses(
            [started_in(own.environment, command) for command in commands],
            watched=watched,
        )

    return own, processes


TELL_EVERY = 5.0
"""Seconds after which a `Moved` is yielded for a run without new progress: it may hang."""


def run_steps(
    folder: StudyFolder, point: Point, hold: Hold = reserve_here
) -> Generator[Note | Moved | UnrecordedFailure, None, None]:
    """Run one point, which names its prepared data set and split, to its end.

    A run that cannot be started, or whose files cannot be written, raises no error, so that the next point
    can be run.

    Raises:
        KeyboardInterrupt: If it is thrown into the generator, after all workers have ended.
    """
    run: RunFolder | None = None
    try:
        with contextlib.ExitStack() as held:
            planned = point.oversubscribed
            point, start = yield from hold(held, folder, point)
            if point.oversubscribed != planned:
                yield Note(
                    f"{point.name} is disturbed: {point.oversubscribed}. Its times do not count."
                )
            run = interrupted_run(folder, point) or folder.new_run(point)
            processes = start(run)
            failure = yield from _attempt(run, processes)
            if failure is None:
                run.forget_signs()
                share = processes.others()
                if share >= BUSY:
                    disturbance = Disturbance(share=share)
                    run.write_disturbance(disturbance)
                    yield Note(f"{point.name} is disturbed: {disturbance.words}.")
    except (OSError, ScalestudyError) as error:
        failure = failure_to_start(error)
    if failure is not None and (unwritten := record_failure(run, failure)):
        if run is not None and not was_removed(run):
            failure = failure.model_copy(
                update={"reason": f"{failure.reason}; {unwritten}"}
            )
        yield UnrecordedFailure(point.name, failure)
    yield Moved(point.name)


def _attempt(
    run: RunFolder, processes: ProcessGroup
) -> Generator[Note | Moved, None, Failure | None]:
    kills = oom_kills()
    point = run.point()
    detector = HangDetector(run, processes.size, point.launch.progress_timeout)
    asked, deadline = False, float("inf")
    last, seen = float("-inf"), (0, 0)
    with spare_space(run.path), processes as workers:
        try:
            STOP.awaited = True
            while (
                workers.running()
                and workers.first_failure() is None
                and not was_removed(run)
            ):
                written = _progress_written(run)
                if written != seen or time.monotonic() - last >= TELL_EVERY:
                    last, seen = time.monotonic(), written
                    yield Moved(point.name)
                time.sleep(POLL)
                if hang := detector.check(time.monotonic()):
                    run.write_hang(hang)
                    break
                if STOP.number and not asked:
                    asked = True
                    with contextlib.suppress(OSError, RunError):
                        run.ask_to_stop()
                    if STOP.number == signal.SIGTERM:
                        deadline = time.monotonic() + LEFT_WITHIN
                    yield Note(
                        f"{point.name} stops at a checkpoint; Ctrl-C stops it at once."
                    )
                if time.monotonic() > deadline:
                    break
        except (KeyboardInterrupt, GeneratorExit):
            workers.stop()
            record_failure(run, None if run.result() else STOP.failure(run))
            raise
        finally:
            STOP.awaited = False
        failed = workers.first_failure()
    if (lost := processes.lost()) and run.result() is None:
        return Failure(
            rank=None, exit_code=None, reason=f"{lost}; run it again to continue"
        )
    failure = failure_of_end(
        run, failed, workers.ended_at(failed[0]) if failed else 0.0, kills
    )
    return (
        STOP.failure(run)
        if failure and failed is None and STOP.number and not run.hang()
        else failure
    )


def _progress_written(run: RunFolder) -> tuple[int, int]:
    """Identify the progress record: it is replaced, so that the file differs even within a clock's tick."""
    try:
        found = (run.path / "progress.json").stat()
    except OSError:
        return 0, 0
    return found.st_ino, found.st_mtime_ns


def interrupted_run(folder: StudyFolder, point: Point) -> RunFolder | None:
    """Return the newest run of a point, prepared to continue, if it was interrupted and has a checkpoint.

    A run that failed by itself is not continued, in contrast to one of whose ranks was killed; nor one with
    other settings or one that a queue has run: its timings would mix two setups.
    """
    for run in folder.runs(point.name)[-1:]:
        failure = run.failure()
        if (
            run.checkpoint.exists()
            and (
                failure is None
                or failure.rank is None
                or failure.signal in FROM_OUTSIDE
            )
            and run.point().same_as(point)
            and not (run.path / "job.json").exists()
        ):
            run.write_launcher_process()
            run.forget_signs()
            write_point(run.path / "point.json", point)
            run.forget_stop()
            (run.path / "failure.json").unlink(missing_ok=True)
            run.forget_causes()
            return run
    return None


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Handle SIGTERM, SIGINT and SIGHUP with `STOP` within the context; see `StopSignal`.

    Ignored signals, such as SIGHUP under nohup, stay ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    STOP.number = 0
    heard = [
        number for number in STOPPED_BY if signal.getsignal(number) != signal.SIG_IGN
    ]
    before = {number: signal.signal(number, STOP) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def points_here(study: Study) -> list[Point]:
    """Return the points of a study, expanded for this machine.

    Raises:
        UserError: If a point is impossible here, or no requested GPU is visible, with the likely reason.
    """
    gpus = devices.gpus()
    asked = [study.launch.device, *study.sweep.other.get("launch.device", ())]
    if not gpus and ("gpu" in asked or ("auto" in asked and driver_is_dead())):
        reason = why_unseen()
        raise UserError(
            f'a GPU for launch.device = "{"gpu" if "gpu" in asked else "auto"}"',
            f"none{study.place.of('launch.device')}: {reason.words}",
            reason.action,
        )
    return expand(
        study,
        gpus=gpus,
        cores=len(cores.granted()),
        capability=devices.lowest_capability(),
        node_gpus=devices.gpus_of_node(),
    )


class LocalLauncher:
    """Runs points on this machine, within this process's lifetime."""

    title = "this machine"
    detached = False
    checked = False
    hold = staticmethod(reserve_here)
    guard = staticmethod(refuse_open_ports)

    def points(self, study: Study, options: Options) -> list[Point]:
        """Return the points of a study, expanded for this machine's devices and cores.

        Raises:
            UserError: If a point is impossible here, or names another launcher.
        """
        points = points_here(study)
        elsewhere = [
            point.launch.on for point in points if point.launch.on != DEFAULT_LAUNCHER
        ]
        if elsewhere:
            raise UserError(
                f'launch.on = "{DEFAULT_LAUNCHER}" for `scalestudy run`',
                f'"{elsewhere[0]}"{study.place.of("launch.on")}',
                f'Set on = "{DEFAULT_LAUNCHER}" to run on this machine.',
            )
        self.guard(points)
        return points

    def refuse(self, points: Sequence[Point]) -> None:
        """Refuse points that this machine's software cannot run."""
        refuse_missing_software(points)

    def start(
        self, folder: StudyFolder, points: Sequence[Point], options: Options
    ) -> Generator[Step, None, None]:
        """Run points one after another, even if one fails.

        Raises:
            KeyboardInterrupt: On Ctrl-C or SIGTERM, after all workers have ended.
        """
        if note := self.guard(points):
            yield note
        with stoppable():
            for point in points:
                yield from run_steps(folder, point, self.hold)
                if STOP.number:
                    raise KeyboardInterrupt

    def dry_run(
        self,
        target: Path,
        study: Study,
        points: Mapping[str, Point],
        overview: Overview,
        options: Options,
    ) -> Iterator[str | Note]:
        """Yield a line for every point."""
        for status in overview.points:
            point = status.point
            note = (
                f"  (oversubscribed: {point.oversubscribed})"
                if point.oversubscribed
                else ""
            )
            epochs = point.train.epochs
            batch = f"{point.implementation}, global batch {point.global_batch}"
            length = f"{epochs} epoch{'s' * (epochs != 1)}"
            cpus = point.launch.cpus_per_worker
            cores_held = f"{cpus} core{'s' * (cpus != 1)} per worker"
            state = (
                f"{status.state} (disturbed: {status.disturbed})"
                if status.disturbed
                else status.state
            )
            yield f"{point.name}  {state}  {batch}, {length}, {cores_held}{note}"
        yield f"{len(overview.points)} points, {len(points)} to run, results in {target}"


LOCAL = LocalLauncher()
