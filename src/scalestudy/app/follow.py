"""Staying with a study while its points run: those that this process starts, and those of a queue."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from scalestudy.app.listener import Listener
from scalestudy.launch.base import Launcher, Lost, Moved, Note, Options, Overview, PointStatus, Step
from scalestudy.launch.status import study_status
from scalestudy.study.point import Point
from scalestudy.study.records import Failure
from scalestudy.study.store import StudyFolder

SHARE = 0.2
"""Part of the time that may go into reading the folder: a slow file system is read less often."""


def follow(path: Path, listener: Listener, *, until_one_ends: bool = False) -> Overview:
    """Tell how the points of a folder stand until none is queued or running, or one of those no longer is.

    Returns:
        The points as they stand at the end.

    Raises:
        KeyboardInterrupt: On Ctrl-C; what runs goes on.
    """
    started = time.monotonic()
    overview = _look(path, None)
    most = len(overview.open) if until_one_ends else 0
    with listener.following(overview):
        while overview.open and len(overview.open) >= most:
            time.sleep(pause(time.monotonic() - started))
            started = time.monotonic()
            overview = _look(path, overview)
            listener.seen(overview)
    return overview


def pause(cost: float) -> float:
    """Seconds to wait after a look that took `cost` seconds."""
    return max(1.0, cost / SHARE)


def _look(path: Path, known: Overview | None) -> Overview:
    folder = StudyFolder.open(path)  # points may have been added since
    return study_status(folder, known=known)


def stay(
    launcher: Launcher, folder: StudyFolder, todo: Sequence[Point], overview: Overview, options: Options,
    listener: Listener,
) -> Overview:  # fmt: skip
    """Take all steps of a launcher that ends with this process, telling the listener how the points stand.

    Returns:
        The points as they stand at the end; those whose failure no folder could say have failed all the same.
    """
    waiting = {point.name for point in todo}
    lost: dict[str, Failure] = {}

    def look(names: Sequence[str] | None = None) -> None:
        nonlocal overview
        try:
            overview = study_status(folder, known=overview, names=names)
        except OSError as error:  # what cannot be looked at now is as it was
            listener.note(f"{error.filename or folder.path} cannot be read: {error.strerror or error}")
        overview = _with_lost(overview, lost)
        listener.seen(with_turns(overview, waiting))

    def step(taken: Step) -> None:
        if isinstance(taken, Lost):
            lost[taken.name] = taken.failure
        elif isinstance(taken, Moved):
            waiting.discard(taken.name)
            look([taken.name])
        elif isinstance(taken, Note):
            listener.note(taken.text)

    with listener.following(with_turns(overview, waiting)):
        try:
            drive(launcher.start(folder, todo, options), step)
        finally:
            look()
    return overview


def _with_lost(overview: Overview, lost: Mapping[str, Failure]) -> Overview:
    """The overview with the failures that no folder could say."""
    points = [
        replace(status, state="failed", reason=failure.reason, failure=failure, progress=None)
        if (failure := lost.get(status.name)) is not None
        else status
        for status in overview.points
    ]
    return replace(overview, points=points)


def with_turns(overview: Overview, names: set[str]) -> Overview:
    """The overview in which these points have their turn still to come, however they ended before."""
    points = [
        PointStatus(status.point, "missing") if status.name in names else status for status in overview.points
    ]
    return replace(overview, points=points)


def drive(steps: Generator[Step, None, None], on_step: Callable[[Step], None]) -> None:
    """Take all steps of a launcher; Ctrl-C in between reaches it first, so that it ends what is its own."""
    with closing(steps):
        for taken in steps:
            try:
                on_step(taken)
            except KeyboardInterrupt as interrupt:
                steps.throw(interrupt)
                raise
