"""The state of a run, derived from its files and its queue's answer."""

from dataclasses import dataclass

from scalestudy.launch.job_view import JobView
from scalestudy.store.state import (
    RunFiles,
    State,
    how_it_failed,
    state_of_files,
)

FILES_LATE = 30.0
"""Seconds that a slow file system may take to show the result of a job that has completed."""


@dataclass(frozen=True)
class Derived:
    """A run's state.

    Attributes:
        state: Any state but "missing".
        over: Whether only the queue reports the failure, so that it has to be recorded.
        revived: Whether the run is in the queue again although a failure was recorded.
    """

    state: State
    over: bool = False
    revived: bool = False


def derive(
    files: RunFiles,
    view: JobView | None,
    *,
    now: float,
    reported: float | None,
    ended: float | None,
) -> Derived:
    """Derive the state of a run from its files and the queue's answer about its job.

    A result takes precedence over everything. For a job that the queue knows, its answer takes precedence
    over the other files, except progress that is newer than the answer. Without an answer, the files decide.

    Args:
        files: The run's files.
        view: The queue's answer; None if there is none.
        now: Unix time.
        reported: `updated` of the progress before the queue's answer; None if there was none.
        ended: Unix time of the first answer that the job is over; None if it is not.
    """
    if files.damage or files.result or view is None or not files.job:
        return Derived(state_of_files(files, now=now))
    fresh = files.fresh(now)
    # A site or a user may put a job back into the queue that had been recorded as failed.
    revived = files.failure is not None
    if view.live:
        # Progress that differs from the one before the answer: the clocks of this host and of the job's node
        # need not agree.
        younger = files.progress is not None and files.progress.updated != reported
        state: State = "running"
        if view.waiting and not younger:
            state = "queued"
        return Derived(state, revived=revived)
    since = None
    if ended is not None:
        since = now - ended
    return _after(files, view, fresh, since)


def _after(
    files: RunFiles,
    view: JobView,
    fresh: bool,
    since: float | None,
) -> Derived:
    if files.failure is not None:
        return Derived(how_it_failed(files.failure))
    if not view.ended and fresh:  # forgotten by the queue, but still reporting progress
        return Derived("running")
    good = view.state == "COMPLETED" and not files.exit_code
    # Clocks of two login nodes may be compared; a time ahead of this one must not delay the end for ever.
    if good and since is not None and abs(since) < FILES_LATE:
        return Derived("running")
    if view.state == "CANCELLED":
        return Derived("cancelled", over=True)
    return Derived("failed", over=True)
