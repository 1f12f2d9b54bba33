"""The interface of a launcher, which starts the workers of a study's points and reports their states."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from scalestudy.config.file import Study
from scalestudy.config.point import Point
from scalestudy.launch.job_view import JobView
from scalestudy.launch.waiting import Waiting
from scalestudy.store.records import Failure, JobRecord, Progress, Result
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.state import UNSUCCESSFUL, State
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.registry import Registry

LAUNCHERS: Registry[Launcher] = Registry("scalestudy.launchers")
"""What `launch.on` can name."""
AnyStep = TypeVar("AnyStep")
Ended = TypeVar("Ended")


@dataclass(frozen=True)
class PointStatus:
    """The state of a point.

    Attributes:
        point: The point.
        state: Its state.
        reason: Why it failed or was cancelled, in one sentence; for corrupt records also what to do; which
            rank a running run waits for, if `still`; "" otherwise.
        run: The run that determines the state: the newest finished one, else a running one, else the newest.
        result: Result of a finished run.
        progress: Progress of a running run; None if it has not reported any.
        failure: The recorded failure.
        job: The run's job in the queue; None for a run on this machine.
        view: The queue's last answer about that job; None if there is none.
        waiting: Why a queued job waits, and the next command; None if unknown.
        silent: Seconds, in steps of five, since a running run's slowest rank progressed; None if unknown.
        still: Whether `silent` is so long that the run's pace says nothing about its end.
    """

    point: Point
    state: State
    reason: str = ""
    run: RunFolder | None = None
    result: Result | None = None
    progress: Progress | None = None
    failure: Failure | None = None
    job: JobRecord | None = None
    view: JobView | None = None
    waiting: Waiting | None = None
    silent: int | None = None
    still: bool = False

    @property
    def name(self) -> str:
        """Name of the point."""
        return self.point.name

    @property
    def disturbed(self) -> str:
        """Who else used the cores of a finished run, so that its times are too long; "" if nobody did."""
        if self.result is None or self.run is None:
            return ""
        # A point that was planned oversubscribed is not disturbed by it: its times never count.
        if self.result.oversubscribed and not self.point.oversubscribed:
            return self.result.oversubscribed
        noted = self.run.disturbance()
        return noted.words if noted else ""

    @property
    def runnable(self) -> bool:
        """Whether the point is to be run: neither done, queued nor running."""
        # Corrupt records are left to the user, whom the reason tells how to repair them.
        return self.state in (*UNSUCCESSFUL, "missing")


@dataclass(frozen=True)
class Overview:
    """The states of all points of a study.

    Attributes:
        points: The points, in the order of the study.
        asked: Unix time of the queue's last answer; 0 if there is none.
        error: Why there is no newer answer; "" if the answer is current.
        queue_title: Title of the queue that was asked.
        upcoming: Names of the points that this process will run next, in order.
    """

    points: list[PointStatus]
    asked: float = 0.0
    error: str = ""
    queue_title: str = ""
    upcoming: tuple[str, ...] = ()

    @property
    def open(self) -> list[PointStatus]:
        """Points in a queue or running."""
        return [
            status for status in self.points if status.state in ("queued", "running")
        ]

    @property
    def failed(self) -> list[PointStatus]:
        """Points that failed or were cancelled."""
        return [status for status in self.points if status.state in UNSUCCESSFUL]

    @property
    def runnable(self) -> list[PointStatus]:
        """Points to be run."""
        return [status for status in self.points if status.runnable]

    @property
    def disturbed(self) -> list[PointStatus]:
        """Finished points whose cores another study or other programs used as well."""
        return [status for status in self.points if status.disturbed]

    @property
    def damaged(self) -> list[PointStatus]:
        """Points with corrupt records."""
        return [status for status in self.points if status.state == "corrupt"]

    @property
    def states(self) -> dict[str, State]:
        """State of each point, by name."""
        return {status.name: status.state for status in self.points}

    def of(self, name: str) -> PointStatus:
        """Return the point with this name."""
        return next(status for status in self.points if status.name == name)

    def over(self, points: Sequence[Point]) -> Overview:
        """Return the overview of these points only; a point that is not in the folder yet is missing."""
        known = {status.name: status for status in self.points}
        return replace(
            self,
            points=[
                known.get(point.name) or PointStatus(point, "missing")
                for point in points
            ],
        )


@dataclass(frozen=True)
class Options:
    """How points are started. A launcher ignores options that do not apply to it.

    Attributes:
        base: Folder to which relative paths in the study refer.
        at_most: Maximum number of jobs in the queue at once; None for no limit.
        feeds: Whether the caller submits the remaining points later, so that no note about them is needed.
        resubmissions: How often a point may be submitted again.
        repeat: Whether to run again what another study or other programs disturbed.
        after: Id of a job of the queue that must succeed before these start; None for none.
    """

    base: Path = Path()
    at_most: int | None = None
    feeds: bool = False
    resubmissions: int = 3
    repeat: bool = False
    after: str | None = None


@dataclass(frozen=True)
class Moved:
    """A step of a launcher: this point's run has begun, made progress or ended."""

    name: str


@dataclass(frozen=True)
class UnrecordedFailure:
    """A step of a launcher: this point's run failed, and its folder could not record it (a full disk)."""

    name: str
    failure: Failure


@dataclass(frozen=True)
class Submitted:
    """A step of a launcher: a queue has accepted this point."""

    name: str
    job: str


@dataclass(frozen=True)
class Note:
    """A step of a launcher: a message for the user."""

    text: str


Step = Moved | UnrecordedFailure | Submitted | Note


class Launcher(Protocol):
    """Starts the workers of points. Registered by name in the entry point group "scalestudy.launchers".

    Attributes:
        title: Name shown to users, such as "Slurm".
        detached: Whether its runs continue when this process ends. Their data is then prepared beforehand.
        checked: Whether `check` can ask its queue about the site and submit to it.
    """

    title: str
    detached: bool
    checked: bool

    def points(self, study: Study, options: Options) -> list[Point]:
        """Return the points of a study, expanded for the devices of this launcher.

        Raises:
            UserError: If a point is impossible there; the message names the line.
        """
        ...

    def refuse(self, points: Sequence[Point]) -> None:
        """Refuse points whose software is not installed. Called before data is prepared.

        Raises:
            UserError: If software is missing; the message says what to install.
        """
        ...

    def start(
        self,
        folder: StudyFolder,
        points: Sequence[Point],
        options: Options,
    ) -> Generator[Step, None, None]:
        """Start points with their prepared data. The caller holds the lock of the folder.

        Between two steps, the caller may throw a KeyboardInterrupt into the generator, or close it. On this
        machine the generator ends with the last worker; for a queue, each submission is a step.

        Raises:
            UserError: If a queue refuses a job; the message quotes the queue.
            RunError: If the queue cannot be reached, or the folder cannot be written to.
            KeyboardInterrupt: On this machine, after the workers have ended.
        """
        ...

    def dry_run(
        self,
        target: Path,
        study: Study,
        points: Mapping[str, Point],
        overview: Overview,
        options: Options,
    ) -> Iterator[str | Note]:
        """Yield what `start` would do in that folder, as texts to print. Nothing is written.

        Args:
            target: The study's folder, which need not exist.
            study: The study.
            points: Points that would be started, by name; with their data if the launcher is detached.
            overview: All points.
            options: How to start them.
        """
        ...


def take_steps(
    steps: Generator[AnyStep, None, Ended], on_step: Callable[[AnyStep], object]
) -> Ended:
    """Take all steps, of a launcher or of a reservation, and return what its generator returns.

    On Ctrl-C while `on_step` handles a step, the generator gets the exception first, to stop its workers.
    """
    # An error in `on_step` ends the workers at once, not when the generator is collected.
    with closing(steps):
        # Not `for`, which drops what the generator returns.
        while True:
            try:
                taken = next(steps)
            except StopIteration as end:
                result: Ended = end.value
                return result
            try:
                on_step(taken)
            except KeyboardInterrupt as interrupt:
                # Without this, `closing` would end the workers too, but not tell it from an error here.
                steps.throw(interrupt)
                raise


def launcher(name: str) -> Launcher:
    """Return the launcher with this name; raises KeyError."""
    return LAUNCHERS.get(name)


def launcher_of(study: Study) -> Launcher:
    """Return the launcher of a study."""
    return launcher(study.launch.on)


def queues() -> list[str]:
    """Return the names of the launchers whose runs outlive this process."""
    return [name for name in LAUNCHERS.names() if launcher(name).detached]
