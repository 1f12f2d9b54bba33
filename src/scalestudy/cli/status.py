"""`scalestudy status`: how far a study is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from scalestudy.cli.points_table import Row
    from scalestudy.study.store import StudyFolder


def status(
    folder: Annotated[Path, typer.Argument(help="Results folder of a study.", metavar="DIR")],
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until nothing runs any more.")] = False,
) -> None:
    """Show the state, progress and quality of every point.

    Of a study in Slurm's hands also the jobs, their nodes, and what they wait for.
    """
    from scalestudy.cli.console import out
    from scalestudy.cli.points_table import points_table
    from scalestudy.launch.queue.jobs.overview import through_slurm
    from scalestudy.study.store import StudyFolder

    console, study = out(), StudyFolder.open(folder)
    if through_slurm(study):
        from scalestudy.cli.queue_table import print_queue, watch_queue

        if watch:
            watch_queue(study, console)
        if not watch or not console.is_terminal:
            print_queue(study, console)
        return
    found = _rows(study)
    if not watch:
        console.print(points_table(found, 2 * len(found)))
        return
    import time

    from rich.live import Live

    with Live(points_table(found, console.height - 5), console=console, auto_refresh=False) as live:
        while any(row.state == "running" for row in found):
            time.sleep(1)
            found = _rows(StudyFolder.open(folder))
            live.update(points_table(found, console.height - 5), refresh=True)


def _rows(study: "StudyFolder") -> "list[Row]":
    from scalestudy.cli.points_table import row_of

    states = study.states()
    return [row_of(point, states[point.name], study.runs(point.name)) for point in study.points()]
