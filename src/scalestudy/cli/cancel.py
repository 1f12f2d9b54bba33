"""`scalestudy cancel`: jobs of a study, taken out of the queue or ended."""

from scalestudy.cli.study_argument import PointsOption, StudyArgument, open_study


def cancel(
    study: StudyArgument = None,
    points: PointsOption = None,
) -> None:
    """Cancel the queued and running jobs of a study. What is cancelled can be submitted again.

    Without --point also jobs of this folder that none of its runs knows of: those of an earlier study that
    was removed from here, or of a script that was submitted by hand.
    """
    from scalestudy.app.selection import named_points
    from scalestudy.cli.console import out
    from scalestudy.launch.queue.jobs import cancel_jobs, end_orphans, find_orphans

    opened = open_study(study)
    cancelled = cancel_jobs(opened, named_points([point.name for point in opened.points()], points or []))
    orphans = [] if points else find_orphans(opened, must=True)
    end_orphans(orphans)
    if not cancelled and not orphans:
        out().print("Nothing to cancel: no job is queued or running.")
    for status in cancelled:
        if status.job:
            out().print(f"Cancelled {status.name} ({status.state}, job {status.job.job})", markup=False)
    for orphan in orphans:
        out().print(f"Cancelled job {orphan.job.job}: no run here knew of it", markup=False)
