"""`scalestudy status`: how far a study is."""

from pathlib import Path
from typing import Annotated

import typer


def status(
    folder: Annotated[Path, typer.Argument(help="Results folder of a study.", metavar="DIR")],
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until nothing runs any more.")] = False,
) -> None:
    """Show the state, progress and quality of every point."""
    from scalestudy.cli.console import out
    from scalestudy.cli.points_table import Row, points_table, row_of
    from scalestudy.study.store import StudyFolder

    console = out()

    def rows() -> list[Row]:
        study = StudyFolder.open(folder)
        states = study.states()
        return [row_of(point, states[point.name], study.runs(point.name)) for point in study.points()]

    found = rows()
    if not watch:
        console.print(points_table(found, 2 * len(found)))
        return
    import time

    from rich.live import Live

    with Live(points_table(found, console.height - 5), console=console, auto_refresh=False) as live:
        while any(row.state == "running" for row in found):
            time.sleep(1)
            found = rows()
            live.update(points_table(found, console.height - 5), refresh=True)
