"""Ending the jobs of a study: those of its runs, and orphans that no run of its folder names."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalestudy.launch.base import Overview, PointStatus
from scalestudy.launch.queue.base import MarkedJob, Queue, study_digest
from scalestudy.launch.queue.polling import forget
from scalestudy.launch.status import in_queue, queue_of, study_status
from scalestudy.study.store import StudyFolder
from scalestudy.util.errors import ScalestudyError, UserError


def cancel_jobs(folder: StudyFolder, names: Sequence[str]) -> list[PointStatus]:
    """Cancel the queued and running jobs of these points, or of all when none is named.

    Returns:
        The points as they stood, whose jobs were cancelled.

    Raises:
        UserError: If the study is this machine's: what runs here ends with its own process.
        QueueUnreachable: If a queue does not answer.
        QueueRefused: If it refuses, with its own words.
        QueueAbsent: If there is none here.
    """
    if queue_of(folder.study.launch.on) is None and not in_queue(folder):
        raise UserError(
            "a study that was submitted to a queue",
            f"{folder.path}, which runs on its own machine",
            "Press Ctrl-C where it runs.",
        )
    chosen = [
        status
        for status in study_status(folder, must=True).open
        if status.job and status.job.job and (not names or status.name in names)  # others: being submitted
    ]
    records = [status.job for status in chosen if status.job]
    for name in dict.fromkeys(record.queue for record in records):
        queue = queue_of(name)
        if queue is None:
            raise UserError(
                f"a launcher {name!r} here, which has the jobs", "none", "Install the package that brings it."
            )
        queue.cancel([record.job for record in records if record.queue == name])
    if chosen:
        forget(folder.path)
    return chosen


@dataclass(frozen=True)
class Orphan:
    """A job of a study that no run knows of: its folder was removed, or its script submitted by hand."""

    queue: Queue
    job: MarkedJob

    def sentence(self) -> str:
        """What is known of it: "job 12_3 (pending, study-horovod-w2-s0) is …"."""
        described = ", ".join(word for word in (self.job.state.lower(), self.job.name) if word)
        return f"Job {self.job.job} ({described}) is of this folder, and no run in it knows of it"


def find_orphans(
    folder: StudyFolder, *, must: bool = False, overview: Overview | None = None
) -> list[Orphan]:
    """The orphans of a study, by what the queues say now.

    Args:
        folder: The study. That it was removed and made again since is no matter: its path counts.
        must: Whether to raise if a queue does not answer; its orphans are passed over otherwise.
        overview: Its points as they stand, so that of those that are done with their first run none is read.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: With `must`.
    """
    known_points = overview.points if overview else []
    done = {
        status.name: status.job
        for status in known_points
        if status.state == "done" and status.run and status.run.number == 1
    }
    runs = [run for point in folder.points() if point.name not in done for run in folder.runs(point.name)]
    records = [record for record in (*(run.job() for run in runs), *done.values()) if record]
    unanswered = {record.submission for record in records if not record.job}  # the next look names them
    digest = study_digest(folder.path)
    orphans = []
    for name in dict.fromkeys([folder.study.launch.on, *(record.queue for record in records)]):
        queue = queue_of(name)
        known = {record.job for record in records if record.queue == name}
        try:
            marked = queue.marked() if queue else []
        except ScalestudyError:
            if must:
                raise
            continue
        orphans += [
            Orphan(queue, job)
            for job in marked
            if queue and job.mark.study == digest and job.job not in known
            and job.mark.submission not in unanswered
        ]  # fmt: skip
    return orphans


def end_orphans(orphans: Sequence[Orphan]) -> None:
    """Cancel them.

    Raises:
        QueueUnreachable, QueueRefused, QueueAbsent: If a queue does not.
    """
    for queue in {orphan.queue.name: orphan.queue for orphan in orphans}.values():
        queue.cancel([orphan.job.job for orphan in orphans if orphan.queue.name == queue.name])
