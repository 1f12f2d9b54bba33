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
    """Cancel the queued and running jobs of a study. What is cancelled can be submitted again."""
    from scalestudy.cli.console import out
    from scalestudy.cli.point_names import refuse_unknown_points
    from scalestudy.errors import UserError
    from scalestudy.launch.queue.jobs.overview import look, through_slurm
    from scalestudy.launch.queue.jobs.polling import forget
    from scalestudy.launch.slurm.queue.cancel import cancel as cancel_jobs
    from scalestudy.study.store import StudyFolder

    study = StudyFolder.open(folder)
    refuse_unknown_points(study, points or [])
    if not through_slurm(study):
        raise UserError(
            "a study that was submitted to Slurm",
            f"{folder}, which runs on its own machine",
            "Press Ctrl-C where it runs.",
        )
    found = look(study, must=True).open
    chosen = [seen for seen in found if seen.job and (not points or seen.point.name in points)]
    if not chosen:
        out().print("Nothing to cancel: no job is queued or running.")
        return
    cancel_jobs([seen.job.job for seen in chosen if seen.job])
    forget(study.path)
    for seen in chosen:
        if seen.job:
            out().print(f"Cancelled {seen.point.name} ({seen.state}, job {seen.job.job})", markup=False)
