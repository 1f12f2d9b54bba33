"""Cancel the jobs of a study, including orphans, which no longer belong to any run."""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from scalestudy.launch.base import Overview, PointStatus
from scalestudy.launch.queue.base import MarkedJob, Queue, study_digest
from scalestudy.launch.queue.polling import forget
from scalestudy.launch.status import queue_of, study_status
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import ScalestudyError, UserError


class Orphan(NamedTuple):
    """A job of a study's folder that belongs to no run: of an earlier study, or submitted by hand."""

    queue: Queue
    job: MarkedJob

    def sentence(self) -> str:
        """Describe the job in one sentence."""
        described = ", ".join(word for word in (self.job.state.lower(), self.job.name) if word)
        return f"Job {self.job.job} ({described}) is of this folder, but belongs to no run in it"


def cancel_jobs(folder: StudyFolder, names: Sequence[str]) -> tuple[list[PointStatus], list[Orphan]]:
    """Cancel the queued and running jobs of these points; without names, all jobs and orphans.

    Returns:
        The points whose jobs were cancelled, in their states before that, and the cancelled orphans.

    Raises:
        UserError: If the study runs on this machine, where runs end with their own process.
        QueueUnreachable, QueueRefused, QueueAbsent: If a queue does not answer, refuses, or is missing.
    """
    overview = study_status(folder, must=True)
    chosen = [
        status
        for status in overview.open
        if status.job and status.job.job and (not names or status.name in names)  # no id: being submitted
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
            with contextlib.suppress(OSError):  # another user's folder
                status.run.cancelled.touch()
    if jobs:
        forget(folder.path)
    return chosen, orphans


def find_orphans(folder: StudyFolder, overview: Overview, *, must: bool = False) -> list[Orphan]:
    """Ask the queues for the orphans of a study.

    Args:
        folder: The study, identified by its path, so that orphans of a removed study there are found.
        overview: The states of its points.
        must: Whether to raise if a queue does not answer; otherwise its orphans are skipped.

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
            # A run whose job id is not known yet gets it at the next query.
            if queue and job.mark.study == digest and known.get(job.mark.submission) not in ("", job.job)
        ]
    return orphans
