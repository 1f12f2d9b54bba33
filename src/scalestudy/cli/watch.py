"""`scalestudy watch`: studies as they run, in the terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from scalestudy.features.watch.watcher import Watcher

ANSWER = 5.0
"""Seconds that a single picture waits for a queue's answer."""
RESIZED = 0.25
"""Seconds between two looks at the terminal's size."""


def watch(
    folders: Annotated[list[Path], typer.Argument(help="Results folders of studies.", metavar="DIR...")],
    interval: Annotated[
        float, typer.Option("--interval", min=0.1, help="Least seconds between two looks.", metavar="SECONDS")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print one picture, and end.")] = False,
) -> None:
    """Show studies as they run: states, rates, utilisation, losses, when they end, and what they cost.

    What runs and what has failed comes first. Keys: the arrows choose a point, Tab a study, l shows the
    point's logs, s sorts by another column, q leaves. Nothing is written to the folders; a queue is asked
    every ten seconds at most, and not waited for. Without a terminal one picture is printed.

    The end is expected from the times of finished runs and of those under way, with its range; worker-hours
    are those of finished runs, and of those under way so far.
    """
    import sys

    from scalestudy.cli.console import out
    from scalestudy.features.watch.picture import picture
    from scalestudy.features.watch.view import View
    from scalestudy.features.watch.watcher import Watcher

    console = out()
    live = console.is_terminal and sys.stdin.isatty() and not once
    watchers = [Watcher(folder, wait=0.0 if live else ANSWER) for folder in folders]
    if live:
        _follow(watchers, interval, console)
        return
    studies = [watcher.look() for watcher in watchers]
    console.print(picture(studies, View(), console.width, None))
    if all(study.wrong for study in studies):
        raise typer.Exit(2)


def _follow(watchers: "Sequence[Watcher]", interval: float, console: "Console") -> None:
    import os

    from rich.live import Live

    from scalestudy.features.watch.keys import pressed, raw_keys
    from scalestudy.features.watch.picture import picture
    from scalestudy.features.watch.view import View, after, chosen
    from scalestudy.features.watch.watcher import Watching

    view = View()
    news, wakes = os.pipe()
    with (
        raw_keys(),
        Live(console=console, screen=True, auto_refresh=False) as screen,
        Watching(watchers, interval, lambda: os.write(wakes, b".")) as watching,
    ):
        drawn: object = None
        while not view.over:
            status = chosen(view, watching.seen)
            watching.chosen = status.name if status else None
            shown = (id(watching.seen), view, console.size)
            if shown != drawn:
                screen.update(picture(watching.seen, view, *console.size), refresh=True)
                drawn = shown
            for key in pressed(news, RESIZED):
                view = after(view, key, watching.seen)
