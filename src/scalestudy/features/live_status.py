"""Live view of a study in the terminal, for `scalestudy status --live`."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from scalestudy.analysis.remaining import begun, remaining
from scalestudy.app.follow import pause
from scalestudy.launch.launcher import Overview, PointStatus, launcher_of
from scalestudy.launch.logs import is_noise, log_files
from scalestudy.launch.study_status import study_status
from scalestudy.report.live_page import LivePage, remaining_text
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.printable import printable

MOST_RUNS = 4
"""Maximum number of running points shown with their utilisation and last log line."""
HEADING = 2
"""Lines of the name, the end and the cost, which wrap in a narrow terminal."""
LOG_TAIL = 2**12
"""Bytes read from the end of a log to find its last line."""
Table = Callable[[Overview, int], RenderableType]
"""Builds the table of all points, in the given number of lines."""


def show(
    path: Path,
    console: Console,
    table: Table,
    page: LivePage,
) -> None:
    """Show a study live until none of its points is queued or running, or until Ctrl-C.

    `table` builds the table of points; `page` is written meanwhile.

    Raises:
        UserError: If the study cannot be read.
    """
    overview = None
    with Live(console=console, auto_refresh=False) as live:
        try:
            while True:
                started = time.monotonic()
                # Points may have been added since.
                folder = StudyFolder.open(path)
                # Points that were done before are not read again.
                overview = study_status(folder, known=overview)
                view = picture(folder, overview, table, console.height)
                live.update(view, refresh=True)
                page.update(overview)
                if not overview.open:
                    page.end()
                    return
                time.sleep(pause(time.monotonic() - started))
        except KeyboardInterrupt:
            return


def picture(
    folder: StudyFolder,
    overview: Overview,
    table: Table,
    height: int,
) -> Group:
    """Return the view in `height` lines: remaining time and cost, all points, and details of running ones."""
    running = [status for status in overview.points if status.state == "running"]
    elapsed = {}
    for status in running:
        since = begun(status)
        if since is not None:
            elapsed[status.name] = since
    at_once = launcher_of(folder.study).detached
    left = remaining(overview.points, elapsed, at_once=at_once)
    details: list[Text] = []
    # Two lines each: hundreds of running points would leave no line for the table.
    for status in running[:MOST_RUNS]:
        details += _details(status)
    lines = height - len(details) - HEADING - 1
    points = table(overview, max(lines, 3))
    text = remaining_text(left, moving=bool(overview.open))
    return Group(_heading(folder.name, text), points, *details)


def _heading(name: str, text: str) -> Text:
    heading = Text(printable(name), style="bold")
    heading.append(f"  {text}", style="not bold")
    return heading


def _details(status: PointStatus) -> list[Text]:
    """Return two lines for a running point: its utilisation, and the last line of its log."""
    assert status.run is not None
    parts = []
    if status.point.why:
        parts.append(status.point.why)
    if status.progress:
        used = {"CPU": status.progress.cpu_percent, "GPU": status.progress.gpu_percent}
        for name, value in used.items():
            if value is not None:
                parts.append(f"{name} {value:.0f} %")
    line = Text(
        printable(status.name),
        style="bold cyan",
        no_wrap=True,
        overflow="ellipsis",
    )
    line.append("  " + ", ".join(parts), style="default not bold")
    last = f"  | {printable(last_line(status.run))}"
    return [line, Text(last, no_wrap=True, overflow="ellipsis")]


def last_line(run: RunFolder) -> str:
    """Return the last line of the run's first log that says something, after that log's prefix; else ""."""
    for prefix, file in log_files(run):
        # Opening a pipe would block.
        if not file.is_file():
            continue
        with open(file, "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(size - LOG_TAIL, 0))
            lines = stream.read().decode(errors="replace").split("\n")
        for line in reversed(lines):
            # Not what frameworks and launchers print about themselves.
            if line.strip() and not is_noise(line):
                return prefix + line
    return ""
