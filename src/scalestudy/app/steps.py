"""Taking the steps of a launcher, and staying with one whose runs end with us."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from scalestudy.app.listener import Listener
from scalestudy.launch.base import Launcher, Lost, Moved, Note, Options, Overview, PointStatus, Step
from scalestudy.launch.status import study_status
from scalestudy.study.point import Point
from scalestudy.study.records import Failure
from scalestudy.study.store import StudyFolder


def stay(
    launcher: Launcher,
    folder: StudyFolder,
    todo: Sequence[Point],
    overview: Overview,
    options: Options,
    listener: Listener,
) -> Overview:
    """Take all steps of a launcher that ends with this process, telling the listener how the points stand.

    Args:
        launcher: Who starts them.
        folder: The study.
        todo: What is started.
        overview: The points as they stood.
        options: How they are started.
        listener: Is told what happens.

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
        listener.seen(_as_waiting(overview, waiting))

    def step(taken: Step) -> None:
        if isinstance(taken, Lost):
            lost[taken.name] = taken.failure
        elif isinstance(taken, Moved):
            waiting.discard(taken.name)
            look([taken.name])
        elif isinstance(taken, Note):
            listener.note(taken.text)

    with listener.following(_as_waiting(overview, waiting)):
        try:
            drive(launcher.start(folder, todo, options), step)
        finally:
            look()
    return overview


def _with_lost(overview: Overview, lost: Mapping[str, Failure]) -> Overview:
    """The overview with the failures that no folder could say."""
    points = [
        replace(each, state="failed", reason=failure.reason, failure=failure, progress=None)
        if (failure := lost.get(each.name)) is not None
        else each
        for each in overview.points
    ]
    return replace(overview, points=points)


def _as_waiting(overview: Overview, names: set[str]) -> Overview:
    """The overview in which these points have their turn still to come, however they ended before."""
    points = [PointStatus(each.point, "missing") if each.name in names else each for each in overview.points]
    return replace(overview, points=points)


def drive(steps: Generator[Step, None, None], on_step: Callable[[Step], None]) -> None:
    """Take all steps of a launcher; Ctrl-C in between reaches it first, so that it ends what is its own."""
    with closing(steps):
        for each in steps:
            try:
                on_step(each)
            except KeyboardInterrupt as interrupt:
                steps.throw(interrupt)
                raise
