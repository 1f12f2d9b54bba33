"""Events of a study, and following it while its points run, whether this process or a queue starts them.

A terminal or a notebook overrides the methods of `Listener` for what it shows.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from scalestudy.config.point import Point
from scalestudy.launch.launcher import (
    Launcher,
    Moved,
    Note,
    Options,
    Overview,
    PointStatus,
    Step,
    UnrecordedFailure,
    take_steps,
)
from scalestudy.launch.study_status import study_status
from scalestudy.store.records import Failure
from scalestudy.store.study_folder import StudyFolder

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings

SHARE = 0.2
"""Largest share of the time spent reading the folder: a slow file system is read less often."""


class ProgressCallback(Protocol):
    """Receives how much of `total` (if known) is done."""

    def __call__(self, done: int, total: int | None = None, /) -> None:
        """Called repeatedly."""


class Listener:
    """Receives all events and shows nothing."""

    def note(self, text: str) -> None:
        """Report something that the user should know."""

    @contextmanager
    def progress(
        self,
        what: str,
        total: int | None = None,
        unit: str = "",
    ) -> Iterator[ProgressCallback]:
        """Report a longer task such as "Preparing digits"; yields a callback for the amount done."""
        yield lambda done, total=total: None

    def next_runs(self, text: str) -> None:
        """Report what runs next and why, before it does."""

    def already_done(self, count: int, total: int) -> None:
        """Report how many points were done before."""

    def submitted(self, name: str, job: str) -> None:
        """Report a point that the queue has accepted, and its job."""

    @contextmanager
    def following(self, overview: Overview) -> Iterator[None]:
        """Enclose the time while points run; `overview` is their state at the start."""
        yield

    def points_changed(self, overview: Overview) -> None:
        """Report the current state of the points; called only within `following`."""

    def failed(self, status: PointStatus) -> None:
        """Report a point that failed or was cancelled, after everything has ended."""

    def reported(
        self,
        folder: StudyFolder,
        findings: "Findings",
        page: Path,
    ) -> None:
        """Report that the report has been written, and the path of its page."""


def follow(path: Path, listener: Listener, *, until_one_ends: bool = False) -> Overview:
    """Report the state of a folder's points until none is open, or with `until_one_ends` until one has ended.

    Returns:
        The state of the points at the end.

    Raises:
        KeyboardInterrupt: On Ctrl-C; running points continue.
    """
    started = time.monotonic()
    overview = _look(path, None)
    most = 0
    if until_one_ends:
        most = len(overview.open)
    with listener.following(overview):
        while overview.open and len(overview.open) >= most:
            # The queue itself is asked at longer intervals; see `launch/polling.py`.
            time.sleep(pause(time.monotonic() - started))
            started = time.monotonic()
            overview = _look(path, overview)
            listener.points_changed(overview)
    return overview


def pause(cost: float) -> float:
    """Seconds to wait after reading the folder, which took `cost` seconds."""
    return max(1.0, cost / SHARE)


def _look(path: Path, known: Overview | None) -> Overview:
    # Opened anew: points may have been added.
    folder = StudyFolder.open(path)
    return study_status(folder, known=known)


def follow_launcher(
    launcher: Launcher,
    folder: StudyFolder,
    todo: Sequence[Point],
    overview: Overview,
    options: Options,
    listener: Listener,
) -> Overview:
    """Take all steps of a launcher that ends with this process, reporting the state of the points.

    Returns:
        The state of the points at the end, including failures that could not be written to a run folder.
    """
    waiting = {point.name for point in todo}
    lost: dict[str, Failure] = {}

    def shown() -> Overview:
        upcoming = tuple(point.name for point in todo if point.name in waiting)
        # An earlier failure of a point that is run again would look like a new one.
        return replace(with_turns(overview, waiting), upcoming=upcoming)

    def look(names: Sequence[str] | None = None) -> None:
        nonlocal overview
        try:
            overview = study_status(folder, known=overview, names=names)
        except OSError as error:
            # The runs go on, and the last known state stays.
            place = error.filename or folder.path
            listener.note(f"{place} cannot be read: {error.strerror or error}")
        overview = _with_lost(overview, lost)
        listener.points_changed(shown())

    def step(taken: Step) -> None:
        if isinstance(taken, UnrecordedFailure):
            lost[taken.name] = taken.failure
        elif isinstance(taken, Moved):
            waiting.discard(taken.name)
            look([taken.name])
        elif isinstance(taken, Note):
            listener.note(taken.text)

    with listener.following(shown()):
        try:
            take_steps(launcher.start(folder, todo, options), step)
        finally:
            # After Ctrl-C, too: what was stopped is shown as it was left.
            look()
    return overview


def _with_lost(overview: Overview, lost: Mapping[str, Failure]) -> Overview:
    """Add the failures that could not be written to a run folder."""
    points = []
    for status in overview.points:
        failure = lost.get(status.name)
        if failure is None:
            points.append(status)
            continue
        failed = replace(
            status,
            state="failed",
            reason=failure.reason,
            failure=failure,
            progress=None,
        )
        points.append(failed)
    return replace(overview, points=points)


def with_turns(overview: Overview, names: set[str]) -> Overview:
    """Show these points as not started, regardless of how earlier runs ended."""
    points = []
    for status in overview.points:
        if status.name in names:
            points.append(PointStatus(status.point, "missing"))
        else:
            points.append(status)
    return replace(overview, points=points)
