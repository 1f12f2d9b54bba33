"""`scalestudy cancel`: cancel the jobs of a study."""

from scalestudy.cli.console import out
from scalestudy.cli.options import PointsOption, StudyArgument, open_study


def cancel(study: StudyArgument = None, points: PointsOption = None) -> None:
    """Cancel the queued and running jobs of a study. Cancelled points can be submitted again.

    Without --point it also cancels jobs of this folder that belong to no run, such as those of a study that
    was removed.
    """
    from scalestudy.app.selection import named_points
    from scalestudy.launch.queue.jobs import cancel_jobs

    opened = open_study(study)
    names = named_points([point.name for point in opened.points()], points or [])
    cancelled, orphans = cancel_jobs(opened, names)
    if not cancelled and not orphans:
        out().print("Nothing to cancel: no job is queued or running.")
    for status in cancelled:
        if status.job:
            out().print(f"Cancelled {status.name} ({status.state}, job {status.job.job})", markup=False)
    for orphan in orphans:
        out().print(f"Cancelled job {orphan.job.job}: it belonged to no run", markup=False)
