"""A listener for the terminal: bars, notes, a live table, or one line for each run that ends."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scalestudy.app.follow import Listener, ProgressCallback
from scalestudy.app.selection import waiting_sentences
from scalestudy.cli.points_table import describe_queue_error, overview_table
from scalestudy.cli.printing import err, out
from scalestudy.report.point_lines import line_of
from scalestudy.store.state import ENDED

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType
    from rich.live import Live

    from scalestudy.analysis.findings import Findings
    from scalestudy.launch.launcher import Overview, PointStatus
    from scalestudy.report.live_page import LivePage
    from scalestudy.store.study_folder import StudyFolder


class Terminal(Listener):
    """Prints events, and writes the live page, if any. In a terminal, the table is redrawn in place."""

    def __init__(
        self,
        console: "Console | None" = None,
        page: "LivePage | None" = None,
    ) -> None:
        self.console = console or out()
        self.page = page
        self._live: Live | None = None
        self._shown: Overview | None = None
        self._queue_error_shown = False
        self._stuck_shown: set[str] = set()

    def note(self, text: str) -> None:
        """Print on standard error."""
        # Standard output is for results, which may be read by a program.
        err().print(text, markup=False)

    def next_runs(self, text: str) -> None:
        """Print on standard error."""
        self.note(f"Next: {text}")
        if self.page:
            self.page.next = text

    @contextmanager
    def progress(
        self,
        what: str,
        total: int | None = None,
        unit: str = "",
    ) -> Iterator[ProgressCallback]:
        """Show a progress bar on standard error, removed at the end."""
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            ProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        amount: ProgressColumn
        if unit == "bytes":
            amount = DownloadColumn(binary_units=True)
        else:
            amount = MofNCompleteColumn()
        text, console = TextColumn("{task.description}", markup=False), err()
        columns = (
            text,
            BarColumn(),
            amount,
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        # Without a terminal, the bar would leave an empty line.
        with Progress(
            *columns,
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as bars:
            bar = bars.add_task(what, total=total)
            yield lambda done, total=total: bars.update(
                bar,
                completed=done,
                total=total,
            )

    def already_done(self, count: int, total: int) -> None:
        """Print one line."""
        self.console.print(f"{count} of {total} points are already done.", markup=False)

    def submitted(self, name: str, job: str) -> None:
        """Print one line."""
        self.console.print(f"Submitted {name} as job {job}", markup=False)

    @contextmanager
    def following(self, overview: "Overview") -> Iterator[None]:
        """Show the live table, if there is a terminal."""
        self._shown, self._queue_error_shown = overview, False
        if self.page:
            self.page.update(overview)
        if not self.console.is_terminal:
            self._print_queue_error(overview)
            self._print_stuck(overview)
            yield
            return
        from rich.live import Live

        # Redrawn on changes alone; see `points_changed`.
        with Live(
            self._table(overview),
            console=self.console,
            auto_refresh=False,
        ) as self._live:
            yield
        self._live = None

    def points_changed(self, overview: "Overview") -> None:
        """Redraw changes, or print a line for each run that has ended."""
        before, self._shown = self._shown, overview
        if self.page:
            self.page.update(overview)
        if self._live is None:
            self._print_queue_error(overview)
            self._print_stuck(overview)
            ended_before: Mapping[str, str] = {}
            if before:
                ended_before = _ended(before)
            self._print_ends(overview, ended_before)
        elif overview != before or overview.error:
            # Drawing takes time from workers on the same cores, so only changes are drawn.
            self._live.update(self._table(overview), refresh=True)

    def failed(self, status: "PointStatus") -> None:
        """Print the reason, the last lines of the log, and the folder of logs."""
        console = err()
        verbs = {"cancelled": "was cancelled", "failed": "failed"}
        verb = verbs.get(status.state, "was left alone")
        text = f"\n{status.name} {verb}: {status.reason}"
        console.print(text, style="red", markup=False)
        if status.failure:
            for line in status.failure.tail:
                console.print(f"  | {line}", markup=False)
        if status.run is not None:
            console.print(f"  logs: {status.run.path / 'logs'}", markup=False)

    def reported(
        self,
        folder: "StudyFolder",
        findings: "Findings",
        page: "Path",
    ) -> None:
        """Print the decision, and the path of the page."""
        from scalestudy.report.study_document import render_text

        # The live page then leads to the report.
        if self.page:
            self.page.reported = True
        colour = self.console.is_terminal and not self.console.no_color
        text = render_text(findings, colour=colour, page=str(page))
        # Not by the console, which would lay out again what is laid out.
        print("\n" + text, end="")

    def _table(self, overview: "Overview") -> "RenderableType":
        return overview_table(overview, self.console.height - 5)

    def _print_queue_error(self, overview: "Overview") -> None:
        # Once for each time that the queue does not answer, not at each look.
        if overview.error and overview.open and not self._queue_error_shown:
            self.console.print(describe_queue_error(overview), markup=False)
        self._queue_error_shown = bool(overview.error)

    def _print_stuck(self, overview: "Overview") -> None:
        """Print once why jobs do not start by themselves; a table says so in place."""
        for sentence in waiting_sentences(overview.points, stuck_only=True):
            if sentence not in self._stuck_shown:
                self._stuck_shown.add(sentence)
                self.console.print(sentence, markup=False)

    def _print_ends(self, overview: "Overview", before: "Mapping[str, str]") -> None:
        already = 0
        news = []
        for status in overview.points:
            if status.state not in ENDED:
                continue
            if before.get(status.name) == status.state:
                already += 1
            else:
                news.append(status)
        for number, status in enumerate(news, start=already + 1):
            count = f"[{number}/{len(overview.points)}]"
            self.console.print(line_of(status).line(count), markup=False)


def _ended(overview: "Overview") -> "Mapping[str, str]":
    states = {}
    for status in overview.points:
        if status.state in ENDED:
            states[status.name] = status.state
    return states
