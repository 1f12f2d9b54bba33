"""The one state machine: the state of a run from its files and from what a queue says of its job. Pure."""

from dataclasses import dataclass

from scalestudy.launch.queue.jobs.view import JobView
from scalestudy.study.state import RunFiles, State, how_it_failed, state_of_files

FILES_LATE = 30.0
"""Seconds for a result to appear, after its job's good end, on a file system that is slow to show it."""


@dataclass(frozen=True)
class Derived:
    """A run's state.

    Attributes:
        state: "done", "failed", "cancelled", "running" or "queued".
        over: Whether the queue's word alone makes it failed, which is worth writing down.
        revived: Whether it was written down as failed, and is in the queue again all the same.
    """

    state: State
    over: bool = False
    revived: bool = False


def derive(
    files: RunFiles, view: JobView | None, *, now: float, asked: float, ended: float | None
) -> Derived:
    """Hold the files against the queue's word.

    The result counts before all; the queue's word on a job that it knows counts before the other files, but
    for progress that is younger than that word. Without such a word the files alone count.

    Args:
        files: What the run's files say.
        view: What the queue says; None if it was not asked, or does not answer, or has no such job.
        now: Unix time.
        asked: Unix time of the queue's answer.
        ended: Unix time of the answer that first said that the job is over.
    """
    if files.result or view is None or not files.job:
        return Derived(state_of_files(files, now=now))
    fresh = files.fresh(now)
    revived = files.failure is not None
    if view.live:
        younger = files.progress is not None and fresh and files.progress.updated > asked
        return Derived("queued" if view.waiting and not younger else "running", revived=revived)
    return _after(files, view, fresh, None if ended is None else now - ended)


def _after(files: RunFiles, view: JobView, fresh: bool, since: float | None) -> Derived:
    if files.failure is not None:
        return Derived(how_it_failed(files.failure))
    if not view.ended and fresh:  # forgotten by the queue, but evidently at work
        return Derived("running")
    good = view.state == "COMPLETED" and not files.exit_code
    if good and since is not None and since < FILES_LATE:
        return Derived("running")
    return Derived("cancelled" if view.state == "CANCELLED" else "failed", over=True)
