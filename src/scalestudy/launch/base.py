"""What a launcher is: it starts the workers of a study's points somewhere, and reports how they stand."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from scalestudy.study.file import Study
from scalestudy.study.launchers import LAUNCHERS, names
from scalestudy.study.point import Point
from scalestudy.study.records import Failure, JobRecord, Progress, Result
from scalestudy.study.run_folder import RunFolder
from scalestudy.study.settings import Order
from scalestudy.study.state import UNSUCCESSFUL, State
from scalestudy.study.store import StudyFolder
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.launch.queue.base import JobView


@dataclass(frozen=True)
class PointStatus:
    """A point as it stands.

    Attributes:
        point: The point.
        state: Its state.
        reason: Why it failed or was cancelled, in one sentence; of a run that cannot be judged also what to
            do; "" for any other state.
        run: The run that decides: the newest finished one, else one at work, else the newest.
        result: Of a finished run.
        progress: How far a run is that is under way; None if it has not said so yet.
        failure: What was written down of a failure.
        job: The job that the run was given to; None for a run of this machine.
        view: The queue's last word on that job, None if there is none.
        waits: What a queued job waits for, in words; "" if nobody says.
        silent: Of a run under way: seconds, in fives, since its last rank has come further; None if unknown.
        still: Whether that is so long that its pace tells nothing any more.
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
    waits: str = ""
    silent: int | None = None
    still: bool = False

    @property
    def name(self) -> str:
        """Name of the point."""
        return self.point.name

    @property
    def runnable(self) -> bool:
        """Whether it is to be run: neither done nor under way."""
        return self.state in (*UNSUCCESSFUL, "missing")


@dataclass(frozen=True)
class Overview:
    """All points of a study as they stand.

    Attributes:
        points: Row by row.
        asked: Unix time of the queue's word; 0 if there is none.
        error: Why there is no newer one; "" if it is new.
        silent: Title of the queue that gave none.
    """

    points: list[PointStatus]
    asked: float = 0.0
    error: str = ""
    silent: str = ""

    @property
    def open(self) -> list[PointStatus]:
        """Points in a queue or running."""
        return [status for status in self.points if status.state in ("queued", "running")]

    @property
    def failed(self) -> list[PointStatus]:
        """Points that failed or were cancelled."""
        return [status for status in self.points if status.state in UNSUCCESSFUL]

    @property
    def runnable(self) -> list[PointStatus]:
        """Points that are to be run."""
        return [status for status in self.points if status.runnable]

    @property
    def damaged(self) -> list[PointStatus]:
        """Points with a run whose records are corrupt."""
        return [status for status in self.points if status.state == "corrupt"]

    @property
    def states(self) -> dict[str, State]:
        """State of every point by its name."""
        return {status.name: status.state for status in self.points}

    def of(self, name: str) -> PointStatus:
        """The point of this name."""
        return next(status for status in self.points if status.name == name)

    def over(self, points: Sequence[Point]) -> Overview:
        """The same of these points; one that the folder does not hold yet is missing."""
        known = {status.name: status for status in self.points}
        return replace(
            self, points=[known.get(point.name) or PointStatus(point, "missing") for point in points]
        )


@dataclass(frozen=True)
class Options:
    """How points are to be started. What a launcher has no use for it ignores.

    Attributes:
        base: Folder that relative paths of the study are seen from.
        order: Order of runs; as the study has it when None.
        at_most: Jobs that may be in the queue at once; None for all.
        after: A job that must have succeeded before any of these starts.
        feeds: Whether what is left is submitted by and by, so that nobody needs to be told.
        resubmissions: How often a point may be submitted again.
    """

    base: Path = Path()
    order: Order | None = None
    at_most: int | None = None
    after: str | None = None
    feeds: bool = False
    resubmissions: int = 3


@dataclass(frozen=True)
class Moved:
    """A step of a launcher: this point's run has moved forward, begun or ended."""

    name: str


@dataclass(frozen=True)
class Lost:
    """A step of a launcher: this point's run has failed, and its folder cannot say so: the disk is full."""

    name: str
    failure: Failure


@dataclass(frozen=True)
class Submitted:
    """A step of a launcher: a queue has taken this point."""

    name: str
    job: str


@dataclass(frozen=True)
class Note:
    """A step of a launcher: something the user should know."""

    text: str


Step = Moved | Lost | Submitted | Note


class Launcher(Protocol):
    """Starts the workers of points. Found by its name, in the group of entry points "scalestudy.launchers".

    Attributes:
        title: What users call it: "Slurm".
        detached: Whether what it starts goes on when this process ends. Its data is prepared ahead then.
        checked: Whether `check` can ask its queue about the site, and submit to it.
    """

    title: str
    detached: bool
    checked: bool

    def points(self, study: Study, options: Options) -> list[Point]:
        """The points of a study as they can be run there.

        Raises:
            UserError: If one is impossible there, naming the line.
        """
        ...

    def refuse(self, points: Sequence[Point]) -> None:
        """Refuse points whose software is not there, before anything is prepared.

        Raises:
            UserError: Saying what to install.
        """
        ...

    def start(
        self, folder: StudyFolder, points: Sequence[Point], options: Options
    ) -> Generator[Step, None, None]:
        """Start points, each with its data, in the folder that the caller has locked.

        Every step moves forward what this process has to do; between two of them it may be thrown a
        KeyboardInterrupt, or be closed. On this machine the steps last until the last worker has ended; a
        queue's are its submissions.

        Raises:
            UserError: What a queue refuses, with its own words.
            RunError: If it cannot be reached, or if the folder cannot be written to.
            KeyboardInterrupt: Where workers are this process's own, after they have ended.
        """
        ...

    def dry_run(
        self, target: Path, study: Study, points: Mapping[str, Point], overview: Overview, options: Options
    ) -> Iterator[str | Note]:
        """What `start` would do in that folder, as texts to print; nothing is written.

        Args:
            target: The study's folder, which need not exist.
            study: The study.
            points: Those that would be started, by name; with their data where the launcher is detached.
            overview: All points.
            options: How to start them.
        """
        ...


def launcher(name: str) -> Launcher:
    """The launcher of this name.

    Raises:
        UserError: There is none here, though a study may have been made where there was.
    """
    if name not in LAUNCHERS:
        raise UserError(
            f"one of the launchers {', '.join(names())}",
            f'launch.on = "{name}"',
            "Install the package that provides it, or correct launch.on.",
        )
    found: Launcher = LAUNCHERS.get(name)
    return found


def launcher_of(study: Study) -> Launcher:
    """The launcher of a study."""
    return launcher(study.launch.on)


def queues() -> list[str]:
    """Names of the launchers that outlive this process."""
    return [name for name in names() if launcher(name).detached]
