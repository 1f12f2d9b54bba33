"""Cancelling the jobs of a study, whichever queue has them."""

from collections.abc import Sequence

from scalestudy.errors import UserError
from scalestudy.launch.base import PointStatus
from scalestudy.launch.look import look, queue_of
from scalestudy.launch.queue.jobs.polling import forget
from scalestudy.study.store import StudyFolder


def cancel_jobs(folder: StudyFolder, names: Sequence[str]) -> list[PointStatus]:
    """Cancel the queued and running jobs of these points, or of all when none is named.

    Returns:
        The points as they stood, whose jobs were cancelled.

    Raises:
        QueueSilent: If a queue does not answer.
        QueueRefused: If it refuses, with its own words.
        QueueAbsent: If there is none here.
    """
    chosen = [
        each
        for each in look(folder, must=True).open
        if each.job and each.job.job and (not names or each.name in names)  # others are being submitted
    ]
    for name in dict.fromkeys(each.job.queue for each in chosen if each.job):
        queue = queue_of(name)
        if queue is None:
            raise UserError(
                f"a launcher {name!r} here, which has the jobs", "none", "Install the package that brings it."
            )
        queue.cancel([each.job.job for each in chosen if each.job and each.job.queue == name])
    if chosen:
        forget(folder.path)
    return chosen
