"""`scalestudy watch`: a study as it runs, in the terminal."""

from pathlib import Path
from typing import Annotated

import typer


def watch(
    folder: Annotated[Path, typer.Argument(help="Results folder of a study.", metavar="DIR")],
    interval: Annotated[
        float, typer.Option(min=0.1, help="Least seconds between two readings.", metavar="SECONDS")
    ] = 1.0,
) -> None:
    """Show a study as it runs: states, throughput, utilisation, losses, when it ends, and what it costs.

    What runs and what has failed comes first. Keys: the arrows choose a point, s sorts by another column,
    q leaves. Nothing is written to the folder. Without a terminal one picture is printed.
    """
    from scalestudy.cli.console import out
    from scalestudy.features.watch.live import show

    if not show(folder, out(), interval):
        raise typer.Exit(2)
