"""The table of a study in Slurm's hands: once, or until nothing is queued or running."""

import time
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from scalestudy.cli.points_table import Row, duration, points_table, row_of, running_row

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from scalestudy.launch.queue.jobs.overview import Picture, Seen
    from scalestudy.study.store import StudyFolder

SHARE = 0.2
"""Part of the time that may go into reading the folder: a slow file system is read less often."""


def print_queue(folder: "StudyFolder", console: "Console") -> None:
    """Print the table as it stands."""
    from scalestudy.launch.queue.jobs.overview import look

    picture = look(folder)
    console.print(_table(picture, 2 * len(picture.points)))


def watch_queue(folder: "StudyFolder", console: "Console") -> "Picture":
    """Show the table until nothing is queued or running; without a terminal, a line when a run ends.

    Returns:
        The points as they stand at the end.

    Raises:
        KeyboardInterrupt: On Ctrl-C; the jobs go on.
    """
    from rich.live import Live

    from scalestudy.launch.queue.jobs.overview import look

    started, told = time.monotonic(), False
    picture = look(folder)
    before: dict[str, str] = {seen.point.name: seen.state for seen in picture.points}
    if not console.is_terminal:
        while picture.open:
            if picture.error and not told:
                console.print(_silence(picture), markup=False)
            told = bool(picture.error)
            time.sleep(_pause(time.monotonic() - started))
            started = time.monotonic()
            picture = look(folder)
            _print_ends(picture, before, console)
        return picture
    with Live(_table(picture, console.height - 5), console=console, auto_refresh=False) as live:
        while picture.open:
            time.sleep(_pause(time.monotonic() - started))
            started = time.monotonic()
            picture = look(folder)
            live.update(_table(picture, console.height - 5), refresh=True)
    return picture


def queue_row(seen: "Seen") -> Row:
    """The row of a point: its progress, and its job with its nodes or with what it waits for."""
    from scalestudy.launch.slurm.queue.reasons import in_words

    name, view, runs = seen.point.name, seen.view, [seen.run] if seen.run else []
    row = row_of(seen.point, seen.state, runs)
    if seen.job is None or seen.run is None or seen.state == "done":
        return row
    job = f"job {seen.job.job}"
    if seen.state == "running":
        progress = seen.run.progress()
        begun = _unix(view.start) if view else None
        if progress and progress.updated < max(begun or 0.0, seen.job.submitted):
            progress = None  # of the job's life before it was put back into the queue
        return replace(
            running_row(name, progress), job=f"{job} on {view.nodes}" if view and view.nodes else job
        )
    if seen.state == "queued":
        waits = f": {in_words(view.reason)}" if view else ""
        expected = f", expected {view.start.replace('T', ' ')}" if view and view.start else ""
        return replace(row, job=job + waits + expected)
    if not seen.run.failure():
        row = replace(row, reason=f"job {seen.job.job} has ended without a result")
    return replace(row, job=job)


def _table(picture: "Picture", height: int) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    table = points_table([queue_row(seen) for seen in picture.points], height - bool(picture.error))
    return Group(table, Text(_silence(picture), style="yellow")) if picture.error else table


def _silence(picture: "Picture") -> str:
    age = f"its last word is {duration(time.time() - picture.asked)} old" if picture.asked else "it never did"
    return f"Slurm does not answer ({picture.error}); {age}."


def _print_ends(picture: "Picture", before: dict[str, str], console: "Console") -> None:
    ended = [seen for seen in picture.points if seen.state in ("done", "failed")]
    already = sum(before.get(seen.point.name) == seen.state for seen in ended)
    for seen in ended:
        if before.get(seen.point.name) != seen.state:
            already += 1
            console.print(queue_row(seen).line(f"[{already}/{len(picture.points)}]"), markup=False)
    before.update({seen.point.name: seen.state for seen in picture.points})


def _pause(cost: float) -> float:
    return max(1.0, cost / SHARE)


def _unix(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
