"""A study, from what is missing of it to its report."""

import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from scalestudy.conduct.follow import follow
from scalestudy.conduct.listener import Listener
from scalestudy.conduct.request import Request
from scalestudy.conduct.result import StudyResult
from scalestudy.conduct.survey import Survey, survey
from scalestudy.launch.base import Launcher, Moved, Note, Options, Overview, PointStatus, Step, Submitted
from scalestudy.launch.queue.submit.resubmission import goes_on
from scalestudy.study.point import Point
from scalestudy.study.store import StudyFolder


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after something was started. `goes_on`: whether it goes on without us."""

    def __init__(self, *, goes_on: bool) -> None:
        self.goes_on = goes_on
        super().__init__()


def run_study(
    request: Request, *, listener: Listener | None = None, options: Options | None = None, report: bool = True
) -> StudyResult:
    """Run what is missing of a study until nothing of it runs any more, and write its report.

    A failed point does not keep the others from running, and raises nothing. In a queue, what was interrupted
    on the way (time limit, node failure, preemption) is submitted again, to go on from its checkpoint.

    Args:
        request: The study.
        listener: Is told what happens.
        options: How to start it.
        report: Whether to write the report at the end.

    Raises:
        UserError: Before anything is started or written; or what a queue refuses.
        RunError: If a queue cannot be reached.
        Interrupted: On Ctrl-C. Workers of this machine have ended then; a queue's jobs go on.
    """
    listener = listener or Listener()
    found = survey(request, options)
    overview = _in_queue(found, listener) if found.launcher.outlives else _here(found, listener)
    for status in overview.failed:
        listener.failed(status)
    result = StudyResult(StudyFolder.open(request.target), overview)
    if report:
        listener.reported(result.store, result.findings, result.write())
    return result


def submit_study(request: Request, options: Options, *, listener: Listener | None = None) -> int:
    """Give what is missing of a study to its queue.

    Returns:
        How many points the queue has taken.

    Raises:
        UserError: Before anything is written; or what the queue refuses.
        RunError: If it cannot be reached.
    """
    listener = listener or Listener()
    found = survey(request, options)
    return _submit(found, found.todo(), found.options, listener)


def dry_run(
    request: Request, options: Options | None = None, *, listener: Listener | None = None
) -> Iterator[str]:
    """What running or submitting a study would do, as texts; nothing is started or written.

    Raises:
        UserError: If something is not right.
    """
    listener = listener or Listener()
    found = survey(request, options, must=False)
    ready = found.foreseen(found.todo(), listener)
    for text in found.launcher.dry_run(request.target, found.study, ready, found.overview, found.options):
        if isinstance(text, Note):
            listener.note(text.text)
        else:
            yield text


def _here(found: Survey, listener: Listener) -> Overview:
    """Run here, and stay until the last worker has ended."""
    found.launcher.refuse(found.todo())
    ready = found.ready(found.todo(), listener)
    folder, launcher = found.folder(), found.launcher
    try:
        with folder.lock():
            overview = launcher.look(folder)
            todo = [ready[each.name] for each in overview.wanting if each.name in ready]
            if done := len(folder.points()) - len(todo):
                listener.already_done(done, len(folder.points()))
            return _stay(launcher, folder, todo, overview, found.options, listener) if todo else overview
    except KeyboardInterrupt:
        raise Interrupted(goes_on=False) from None


def _stay(
    launcher: Launcher,
    folder: StudyFolder,
    todo: Sequence[Point],
    overview: Overview,
    options: Options,
    listener: Listener,
) -> Overview:
    waiting = {point.name for point in todo}

    def step(taken: Step) -> None:
        nonlocal overview
        if isinstance(taken, Moved):
            waiting.discard(taken.name)
            overview = launcher.look(folder, known=overview, names=[taken.name])
            listener.seen(_as_waiting(overview, waiting))

    with listener.following(_as_waiting(overview, waiting)):
        try:
            _drive(launcher.start(folder, todo, options), step)
        finally:
            overview = launcher.look(folder, known=overview)
            listener.seen(_as_waiting(overview, waiting))
    return overview


def _as_waiting(overview: Overview, names: set[str]) -> Overview:
    """The overview in which these points have their turn still to come, however they ended before."""
    points = [PointStatus(each.point, "missing") if each.name in names else each for each in overview.points]
    return replace(overview, points=points)


def _in_queue(found: Survey, listener: Listener) -> Overview:
    """Submit, and watch until nothing is queued or running, and nothing interrupted can go on."""
    _submit(found, found.todo(), found.options, listener)
    try:
        while True:
            overview = follow(found.request.target, listener)
            again = [each.point for each in overview.points if goes_on(each)]
            options = replace(found.options, interrupted_only=True)
            if not again or not _submit(found, again, options, listener):
                return overview
    except KeyboardInterrupt:
        raise Interrupted(goes_on=True) from None


def _submit(found: Survey, points: Sequence[Point], options: Options, listener: Listener) -> int:
    """Give these points to the queue, and say how many it has taken."""
    ready = found.ready(points, listener)
    taken = 0

    def step(step: Step) -> None:
        nonlocal taken
        if isinstance(step, Submitted):
            taken += len(step.names)
            listener.submitted(step.names, step.job)
        elif isinstance(step, Note):
            listener.note(step.text)

    folder = found.folder()
    try:
        with folder.lock():
            _drive(found.launcher.start(folder, list(ready.values()), options), step)
    finally:
        if found.existing is None:
            _remove_if_unused(folder)
    return taken


def _drive(steps: Generator[Step, None, None], on_step: Callable[[Step], None]) -> None:
    """Take all steps of a launcher; Ctrl-C in between reaches it first, so that it ends what is its own."""
    with closing(steps):
        for each in steps:
            try:
                on_step(each)
            except KeyboardInterrupt as interrupt:
                steps.throw(interrupt)
                raise


def _remove_if_unused(folder: StudyFolder) -> None:
    """Take away the folder of a study of which nothing was submitted: the queue refused the first job."""
    if not any(folder.runs(point.name) for point in folder.points()):
        shutil.rmtree(folder.path, ignore_errors=True)
