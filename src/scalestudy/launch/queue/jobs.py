"""Ending the jobs of a study: those of its runs, and orphans that are no run's any more."""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from scalestudy.launch.base import Overview, PointStatus
from scalestudy.launch.queue.base import MarkedJob, Queue, study_digest
from scalestudy.launch.queue.polling import forget
from scalestudy.launch.status import queue_of, study_status
from scalestudy.study.store import StudyFolder
from scalestudy.util.errors import ScalestudyError, UserError


class Orphan(NamedTuple):
    """A job of a study's folder that is none of its runs': an earlier study's, or of a script by hand."""

    queue: Queue
    job: MarkedJob

    def sentence(self) -> str:
        """What is known of it."""
        described = ", ".join(word for word in (self.job.state.lower(), self.job.name) if word)
        return f"Job {self.job.job} ({described}) is of this folder, but belongs to no run in it"


def cancel_jobs(folder: StudyFolder, names: Sequence[str]) -> tuple[list[PointStatus], list[Orphan]]:
    """Cancel the queued and running jobs of these points; of all, and orphans too, when none is named.

    Returns:
        The points as they stood, whose jobs were cancelled, and the orphans that were.

    Raises:
        UserError: If the study is this machine's: what runs here ends with its own process.
        QueueUnreachable, QueueRefused, QueueAbsent: If a queue does not answer, refuses, or is not there.
    """
    overview = study_status(folder, must=True)
    chosen = [
        status
        for status in overview.open
        if status.job and status.job.job and (not names or status.name in names)  # others: being submitted
    ]
    orphans = [] if names else find_orphans(folder, overview, must=True)
    jobs = [(status.job.queue, status.job.job) for status in chosen if status.job]
    jobs += [(orphan.queue.name, orphan.job.job) for orphan in orphans]
    if queue_of(folder.study.launch.on) is None and not any(status.job for status in overview.points):
        raise UserError(
            "a study that was submitted to a queue",
            f"{folder.path}, which runs on its own machine",
            "Press Ctrl-C where it runs.",
        )
    for name in dict.fromkeys(name for name, _ in jobs):
        queue = queue_of(name)
        if queue is None:
            raise UserError(
                f"the launcher {name!r}, which submitted the jobs",
                "none",
                "Install the package that provides it.",
            )
        queue.cancel([job for launcher, job in jobs if launcher == name])
    for status in chosen:
        if status.run:
            with contextlib.suppress(OSError):  # a colleague's folder
                status.run.cancelled.touch()
    if jobs:
        forget(folder.path)
    return chosen, orphans


def find_orphans(folder: StudyFolder, overview: Overview, *, must: bool = False) -> list[Orphan]:
    """The orphans of a study, by what the queues say now.

    Args:
        folder: The study. That it was removed and made again since is no matter: its path counts.
        overview: Its points as they stand.
        must: Whether to raise if a queue does not answer; its orphans are passed over otherwise.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: With `must`.
    """
    records = [status.job for status in overview.points if status.job]
    known = {record.submission: record.job for record in records}
    digest = study_digest(folder.path)
    orphans = []
    for name in dict.fromkeys([folder.study.launch.on, *(record.queue for record in records)]):
        queue = queue_of(name)
        try:
            marked = queue.marked() if queue else []
        except ScalestudyError:
            if must:
                raise
            continue
        orphans += [
            Orphan(queue, job)
            for job in marked
            # A run whose id is not known yet learns it at the next look.
            if queue and job.mark.study == digest and known.get(job.mark.submission) not in ("", job.job)
        ]
    return orphans
