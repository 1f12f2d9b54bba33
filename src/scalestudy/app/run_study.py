"""Run or submit the missing points of a study, and write its report."""

import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from scalestudy.app.follow import (
    Listener,
    follow,
    follow_launcher,
    with_turns,
)
from scalestudy.app.plan import Plan, Request, plan_study
from scalestudy.app.result import StudyResult
from scalestudy.app.selection import waiting_sentences
from scalestudy.app.task_checks import check_task_files
from scalestudy.config.formula import suggestion
from scalestudy.config.point import Point
from scalestudy.config.run_order import RunOrder
from scalestudy.launch.launcher import (
    Note,
    Options,
    Overview,
    Step,
    Submitted,
    take_steps,
)
from scalestudy.launch.queue.queue_launcher import (
    QueueLauncher,
    can_continue,
    next_submission,
)
from scalestudy.launch.study_status import study_status
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util import units
from scalestudy.util.errors import RunError, UserError


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after something was started. `can_continue`: whether that continues without this process."""

    def __init__(self, *, goes_on: bool) -> None:
        self.goes_on = goes_on
        super().__init__()


def run_study(
    request: Request,
    *,
    listener: Listener | None = None,
    options: Options | None = None,
    report: bool = True,
) -> StudyResult:
    """Run the missing points of a study until all have ended, and write its report.

    A failed point does not stop the others and raises nothing. In a queue, interrupted points (time limit,
    node failure, preemption) are submitted again to continue from their checkpoints.

    Raises:
        UserError: Before anything is started or written; or a queue refuses a job.
        RunError: A queue cannot be reached; or, after all points have ended, the folder was removed or the
            report cannot be written.
        Interrupted: On Ctrl-C. Workers of this machine have ended by then; a queue's jobs continue.
    """
    listener = listener or Listener()
    plan = plan_study(request, options, listener=listener)
    # Disturbed runs are done, and may be repeated.
    again = plan.to_run(plan.overview)
    done = 0
    for status in plan.overview.points:
        if status.state == "done" and status.name not in again:
            done += 1
    if done:
        listener.already_done(done, len(plan.points))
    overview = run_points(plan, listener)
    for status in (*overview.failed, *overview.damaged):
        listener.failed(status)
    return reported(request, overview, listener, report=report)


def run_points(plan: Plan, listener: Listener) -> Overview:
    """Run what is missing of a plan, here or in a queue, and return the states of its points."""
    if plan.launcher.detached:
        return _in_queue(plan, listener)
    return _here(plan, listener)


def submit_study(
    request: Request,
    options: Options,
    *,
    listener: Listener | None = None,
) -> int:
    """Submit the missing points of a study to its queue.

    Returns:
        The number of points that the queue has accepted.

    Raises:
        UserError: Before anything is written; or the queue refuses a job.
        RunError: The queue cannot be reached.
    """
    listener = listener or Listener()
    plan = plan_study(request, options, listener=listener)
    for status in plan.overview.damaged:
        listener.failed(status)
    taken = _submit(plan, plan.todo(), plan.options, listener, set())
    if taken:
        overview = study_status(StudyFolder.open(request.target))
    else:
        overview = plan.overview
    for sentence in waiting_sentences(overview.points, stuck_only=True):
        listener.note(sentence)
    return len(taken)


def dry_run(
    request: Request,
    options: Options | None = None,
    *,
    listener: Listener | None = None,
) -> Iterator[str]:
    """Yield texts on what running or submitting a study would do, without starting or writing anything.

    Raises:
        UserError: Something in the study is wrong, or its points cannot run here.
    """
    listener = listener or Listener()
    plan = plan_study(request, options, dry=True, listener=listener)
    ready = plan.dry_run_points(plan.todo(), listener)
    check_task_files(ready.values(), listener)
    plan.launcher.refuse(list(ready.values()))
    for text in plan.launcher.dry_run(
        request.target,
        plan.study,
        ready,
        plan.overview,
        plan.options,
    ):
        if isinstance(text, Note):
            listener.note(text.text)
        else:
            yield text
    if ready and not plan.launcher.detached:
        yield from _in_words(plan.order, ready.values())
    if ready:
        yield _expected_time(plan, set(ready))
    left = []
    for status in plan.overview.disturbed:
        if status.name not in ready:
            left.append(status.name)
    if left:
        yield f"{len(left)} of the finished ones are disturbed: --repeat-disturbed repeats them."
    shared = [point for point in ready.values() if point.oversubscribed is not None]
    if shared:
        yield f"{len(shared)} of them oversubscribed: their times will not count."


def job_scripts(
    request: Request,
    options: Options | None = None,
    *,
    point: str | None,
    listener: Listener,
) -> dict[str, str]:
    """Return the job script of a point, or of every point of a study, whatever its state.

    Args:
        request: The study, whose launcher submits to a queue.
        options: How to submit it.
        point: Name of the point; None for all.
        listener: Is told what a dry run would be told.

    Raises:
        UserError: There is no such point, or its script cannot be written.
    """
    plan = plan_study(request, options, dry=True, listener=listener)
    assert isinstance(plan.launcher, QueueLauncher)
    points = []
    for known in plan.order.arrange(plan.points):
        if point in (None, known.name):
            points.append(known)
    if not points:
        names = [known.name for known in plan.points]
        close = suggestion(point or "", names)
        expected = f"the name of one of the {len(names)} points"
        action = f"One is {names[0]}."
        if close:
            action = f"Did you mean {close}?"
        raise UserError(expected, str(point), action)
    ready = plan.dry_run_points(points, listener)
    return plan.launcher.scripts(
        request.target,
        plan.study,
        ready,
        plan.overview,
        plan.options,
    )


def _expected_time(plan: Plan, names: set[str]) -> str:
    from scalestudy.analysis.remaining import remaining

    left = remaining(
        with_turns(plan.overview, names).points,
        {},
        at_once=plan.launcher.detached,
    )
    if left.seconds is None:
        return "Their time can be predicted once a run has ended."
    low, likely, high = map(units.duration, left.seconds)
    beside = at_once = ""
    if left.unknown:
        beside = f", and {left.unknown} more of unknown duration"
    # How many jobs a queue starts together is not known.
    if plan.launcher.detached:
        at_once = " if one runs at a time"
    return f"They take about {likely} ({low} to {high}){at_once}, judging by finished runs{beside}."


def _in_words(order: RunOrder, points: Iterable[Point]) -> Iterator[str]:
    yield f"They run in blocks of one seed, rows shuffled (order seed {order.seed}):"
    # Points come block by block: of one seed, and of one seed of the data where those are swept.
    for seed, block in groupby(points, key=lambda point: point.seed):
        names = [point.name for point in block]
        yield f"  seed {seed}: {', '.join(names)}"


def reported(
    request: Request,
    overview: Overview,
    listener: Listener,
    *,
    report: bool,
) -> StudyResult:
    """Write the report of a study if `report`, and return its results."""
    if not (request.target / "study.json").exists():
        raise RunError(
            "the results folder of the study",
            f"{request.target}, which was removed while the study ran",
            "Run the study again. Its results are lost.",
        )
    result = StudyResult(StudyFolder.open(request.target), overview)
    # The runs are kept, whatever becomes of their report.
    try:
        if report:
            listener.reported(result.store, result.findings, result.report())
    except OSError as error:
        raise RunError(
            "a folder to which the report can be written",
            f"{error.filename or request.target}: {error.strerror or error}",
            f"Make room there, then: scalestudy report {shlex.quote(str(request.target))}",
        ) from error
    return result


def _here(plan: Plan, listener: Listener) -> Overview:
    """Run on this machine, and wait until the last worker has ended."""
    plan.launcher.refuse(plan.todo())
    ready = plan.ready(plan.todo(), listener)
    folder, launcher = plan.folder(), plan.launcher
    try:
        with folder.lock():
            # Another process may have run some since the plan was made.
            overview = study_status(folder)
            names = plan.to_run(overview)
            todo = [point for name, point in ready.items() if name in names]
            if not todo:
                return overview
            # As finished, a point that is repeated would not be read again.
            turns = with_turns(overview, {point.name for point in todo})
            return follow_launcher(
                launcher,
                folder,
                todo,
                turns,
                plan.options,
                listener,
            )
    except KeyboardInterrupt:
        raise Interrupted(goes_on=False) from None


def _in_queue(plan: Plan, listener: Listener) -> Overview:
    """Submit as many points as the queue accepts, and add more until no point is left that can continue."""
    # One run submits more than once, and says each note only the first time.
    options, said = replace(plan.options, feeds=True), set[str]()
    again = partial(next_submission, limit=plan.options.resubmissions)
    left = {status.name for status in plan.overview.runnable if again(status)}
    overview = plan.overview
    taken = _submit(plan, plan.todo(), options, listener, said)
    try:
        while taken or overview.open:
            left -= taken
            # With points left, each end makes room for one of them.
            overview = follow(plan.request.target, listener, until_one_ends=bool(left))
            resumed = set()
            for status in overview.points:
                if can_continue(status) and again(status):
                    resumed.add(status.name)
            points = plan.in_order(left | resumed)
            if not points:
                return overview
            taken = _submit(plan, points, options, listener, said)
        return follow(plan.request.target, listener)
    except KeyboardInterrupt:
        raise Interrupted(goes_on=True) from None


def _submit(
    plan: Plan,
    points: Sequence[Point],
    options: Options,
    listener: Listener,
    said: set[str],
) -> set[str]:
    """Submit these points to the queue; return the names of those that it accepted.

    Notes are added to those that were `said`, and are not repeated.
    """
    plan.launcher.refuse(points)
    ready = plan.ready(points, listener)
    taken: set[str] = set()

    def step(step: Step) -> None:
        if isinstance(step, Submitted):
            taken.add(step.name)
            listener.submitted(step.name, step.job)
        elif isinstance(step, Note) and step.text not in said:
            said.add(step.text)
            listener.note(step.text)

    folder = plan.folder()
    # The plan has asked the queue already.
    if not points:
        return taken
    try:
        # Two submissions at once would submit the same points.
        with folder.lock():
            take_steps(plan.launcher.start(folder, list(ready.values()), options), step)
    finally:
        if plan.existing is None:
            _remove_if_unused(folder)
    return taken


def _remove_if_unused(folder: StudyFolder) -> None:
    """Remove the folder of a study if the queue refused its first job, so that nothing was submitted."""
    if not any(folder.runs(point.name) for point in folder.points()):
        shutil.rmtree(folder.path, ignore_errors=True)
