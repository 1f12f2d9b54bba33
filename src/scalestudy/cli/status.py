"""`scalestudy status`: how far a study is."""

from pathlib import Path
from typing import Annotated

import typer


def status(
    folder: Annotated[Path, typer.Argument(help="Results folder of a study.", metavar="DIR")],
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until nothing runs any more.")] = False,
) -> None:
    """Show the state, progress and quality of every point.

    Of a study in a queue's hands also the jobs, their nodes, and what they wait for.
    """
    from scalestudy.cli.console import out
    from scalestudy.cli.terminal import Terminal, overview_table
    from scalestudy.conduct.follow import follow
    from scalestudy.launch.find import launcher_of
    from scalestudy.study.store import StudyFolder

    console, study = out(), StudyFolder.open(folder)
    if watch:
        follow(folder, Terminal(console))
    if not watch or not console.is_terminal:
        overview = launcher_of(study.study).look(StudyFolder.open(folder))
        console.print(overview_table(overview, 2 * len(overview.points)))
