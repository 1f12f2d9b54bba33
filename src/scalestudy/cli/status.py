"""`scalestudy status`: how far a study is."""

from pathlib import Path
from typing import Annotated

import typer


def status(
    folder: Annotated[Path, typer.Argument(help="Results folder of a study.", metavar="DIR")],
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until nothing runs any more.")] = False,
) -> None:
    """Show the state, progress and quality of every point.

    Of a study in a queue's hands also the jobs, their nodes, and what they wait for; and jobs of this folder
    that none of its runs knows of.
    """
    from scalestudy.cli.console import out
    from scalestudy.cli.terminal import Terminal, overview_table
    from scalestudy.conduct.follow import follow
    from scalestudy.launch.find import launcher_of
    from scalestudy.launch.queue.jobs.strays import find_strays
    from scalestudy.study.store import StudyFolder

    console, study = out(), StudyFolder.open(folder)
    if watch:
        follow(folder, Terminal(console))
    overview = launcher_of(study.study).look(StudyFolder.open(folder))
    if not watch or not console.is_terminal:
        console.print(overview_table(overview, 2 * len(overview.points)))
    for stray in find_strays(study) if not overview.error else []:
        console.print(
            f"{stray.sentence()}; scalestudy cancel {folder} ends it.", style="yellow", markup=False
        )
