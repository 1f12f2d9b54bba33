"""How far a study in Slurm's hands is: its files and Slurm's word together."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from scalestudy.launch.queue.jobs.cause import cause
from scalestudy.launch.queue.jobs.polling import Queue, poll
from scalestudy.launch.slurm.queue.parse_jobs import JobView
from scalestudy.launch.state import Derived, Files, derive
from scalestudy.study.point import Point
from scalestudy.study.records import JobRecord
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.store import State, StudyFolder


@dataclass(frozen=True)
class Seen:
    """A point as it stands.

    Attributes:
        point: The point.
        state: Its state.
        run: Its newest run, the finished one if there is any; None without runs.
        job: The job that this run was given to; None for a run of this machine.
        view: Slurm's last word on that job, None if there is none.
    """

    point: Point
    state: State
    run: RunFolder | None = None
    job: JobRecord | None = None
    view: JobView | None = None


@dataclass(frozen=True)
class Picture:
    """All points as they stand.

    Attributes:
        points: In the order of the study.
        asked: Unix time of Slurm's word; 0 if there is none.
        error: Why there is no newer one; "" if it is new.
    """

    points: list[Seen]
    asked: float = 0.0
    error: str = ""

    @property
    def open(self) -> list[Seen]:
        """Points in the queue or running."""
        return [seen for seen in self.points if seen.state in ("queued", "running")]


def through_slurm(folder: StudyFolder) -> bool:
    """Whether the study is one for the queue, or any of its points has been in it."""
    return folder.study.launch.on == "slurm" or any(
        (run := _newest(folder, point)) is not None and run.job() for point in folder.points()
    )


def look(folder: StudyFolder, *, now: float | None = None, must: bool = False) -> Picture:
    """The points as they stand; Slurm is asked in one batch, and not more often than it should be.

    What turns out to be over without a result is written down as failed; what was, and is in the queue
    again, no longer is.

    Args:
        folder: The study.
        now: Unix time; the present one when None.
        must: Ask Slurm now, and raise if it does not answer.

    Raises:
        SlurmSilent: With `must`, if Slurm does not answer.
        SlurmRefused: With `must`, if it refuses to.
        SlurmAbsent: With `must`, if there is no Slurm.
    """
    now = time.time() if now is None else now
    runs = {point.name: _newest(folder, point) for point in folder.points()}
    jobs = {name: run.job() if run else None for name, run in runs.items()}
    files = {name: Files.of(run) for name, run in runs.items() if run and jobs[name]}
    asked_for = dict(_open_jobs(runs, jobs, files))
    queue = poll(
        folder.path, asked_for, now=now, must=must,
        cluster=next((job.cluster for job in jobs.values() if job and job.cluster), ""),
        over=[job for job, name in asked_for.items() if files[name].exit_code is not None],
    )  # fmt: skip
    points = []
    for point in folder.points():
        run, job = runs[point.name], jobs[point.name]
        if run is None or job is None:
            points.append(Seen(point, folder.state(point.name), run))
            continue
        view = queue.jobs.get(job.job)
        points.append(Seen(point, _settled(run, files[point.name], view, queue, now), run, job, view))
    return Picture(points, queue.asked, queue.error if asked_for else "")


def _newest(folder: StudyFolder, point: Point) -> RunFolder | None:
    runs = folder.runs(point.name)
    return next((run for run in reversed(runs) if run.result()), runs[-1] if runs else None)


def _open_jobs(
    runs: dict[str, RunFolder | None], jobs: dict[str, JobRecord | None], files: dict[str, Files]
) -> Iterator[tuple[str, str]]:
    """Jobs to ask about, each with its point: all without an end, and failed ones that seem to be alive."""
    for name, found in files.items():
        run, job = runs[name], jobs[name]
        if run and job and not found.result and (found.failure is None or run.alive()):
            yield job.job, name


def _settled(run: RunFolder, files: Files, view: JobView | None, queue: Queue, now: float) -> State:
    ended = queue.ended.get(view.job) if view else None
    derived: Derived = derive(files, view, now=now, asked=queue.asked, ended=ended)
    # A folder that is another's to write to is only looked at.
    with contextlib.suppress(OSError):
        if derived.revived:
            (run.path / "failure.json").unlink(missing_ok=True)
        elif derived.over and view is not None:
            if run.result():  # it may have appeared while Slurm was asked
                return "done"
            run.write_failure(cause(run, view))
    return derived.state
