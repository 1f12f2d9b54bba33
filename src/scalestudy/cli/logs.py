"""`scalestudy logs`: what the workers of a run have written."""

from typing import Annotated

import typer

from scalestudy.cli.study_argument import StudyArgument, open_study


def logs(
    study: StudyArgument = None,
    point: Annotated[
        str | None,
        typer.Option(help="Point; the one that is running, or ran last, when absent.", metavar="POINT"),
    ] = None,
    rank: Annotated[int | None, typer.Option(min=0, help="One rank; all when absent.", metavar="N")] = None,
    job: Annotated[bool, typer.Option("--job", help="The job's own log, instead of the ranks'.")] = False,
    lines: Annotated[int, typer.Option("--lines", min=1, help="Last lines of each log.")] = 20,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on as they grow, until the run has ended.")
    ] = False,
) -> None:
    """Print the last lines of a run's logs.

    It is the newest run of the point; each line has its rank before it. As long as no rank has said anything,
    the job's own log is shown.
    """
    from scalestudy.app.logs import chosen_run
    from scalestudy.app.point_names import refuse_unknown_points
    from scalestudy.cli.console import out
    from scalestudy.cli.tail import Tails
    from scalestudy.launch.failures import log_files
    from scalestudy.util.errors import UserError

    opened = open_study(study)
    folder = opened.path
    refuse_unknown_points(opened, [point] if point else [])
    run = chosen_run(opened, point)
    if run is None:
        raise UserError(
            f"a run of {point or folder}", "none yet", f"`scalestudy status {folder}` shows what there is."
        )
    if not follow and not log_files(run, rank, job=job):
        what = "job.log" if job else "logs of any rank" if rank is None else f"log of rank {rank}"
        raise UserError(
            f"a {what} in {run.path / 'logs'}".replace("a logs", "logs"),
            "none yet",
            f"`scalestudy status {folder}` shows how far it is.",
        )
    out().print(f"{run.path / 'logs'}", markup=False)
    tails = Tails(opened, run, rank, job=job, lines=lines)
    tails.show()
    if follow:
        tails.follow()
