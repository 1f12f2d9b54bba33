"""`scalestudy cancel`: jobs of a study, taken out of the queue or ended."""

from pathlib import Path
from typing import Annotated

import typer


def cancel(
    folder: Annotated[Path, typer.Argument(help="Results folder of a study.", metavar="DIR")],
    points: Annotated[
        list[str] | None, typer.Argument(help="Points to cancel; all when none is named.", metavar="POINT")
    ] = None,
) -> None:
    """Cancel the queued and running jobs of a study. What is cancelled can be submitted again.

    Without POINT also jobs of this folder that none of its runs knows of: those of an earlier study that was
    removed from here, or of a script that was submitted by hand.
    """
    from scalestudy.app.point_names import refuse_unknown_points
    from scalestudy.cli.console import out
    from scalestudy.launch.queue.jobs import cancel_jobs, end_orphans, find_orphans
    from scalestudy.study.store import StudyFolder

    study = StudyFolder.open(folder)
    refuse_unknown_points(study, points or [])
    cancelled = cancel_jobs(study, points or [])
    orphans = [] if points else find_orphans(study, must=True)
    end_orphans(orphans)
    if not cancelled and not orphans:
        out().print("Nothing to cancel: no job is queued or running.")
    for each in cancelled:
        if each.job:
            out().print(f"Cancelled {each.name} ({each.state}, job {each.job.job})", markup=False)
    for orphan in orphans:
        out().print(f"Cancelled job {orphan.job.job}: no run here knew of it", markup=False)
