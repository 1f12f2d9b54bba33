"""A study while it runs: a live table in a terminal, one line a finished run elsewhere."""

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from scalestudy.cli.points_table import Row, points_table, row_of, running_row

if TYPE_CHECKING:
    from rich.console import Console

    from scalestudy.study.point import Point
    from scalestudy.study.records import Progress
    from scalestudy.study.run_folder import RunFolder
    from scalestudy.study.store import StudyFolder


class Live:
    """Shows the points of a study; `watch` is what the launcher calls."""

    def __init__(self, folder: "StudyFolder", todo: "Sequence[Point]", console: "Console") -> None:
        from rich.live import Live as RichLive

        waiting = {point.name for point in todo}
        states = folder.states()
        self.console = console
        self.rows = {
            point.name: Row(point.name, "missing")
            if point.name in waiting
            else row_of(point, states[point.name], folder.runs(point.name))
            for point in folder.points()
        }
        self._current: RunFolder | None = None
        self._live = RichLive(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
            self._draw()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_current()
        if self._live:
            self._draw()
            self._live.stop()

    def watch(self, run: "RunFolder", progress: "Progress | None") -> None:
        """Take note of a run's progress.

        None comes before the first progress and at the end alike; the run has ended when there is a
        result, or when another one is watched.
        """
        if run != self._current:
            self._end_current()
            self._current = run
        name = run.path.parent.name
        before, row = self.rows[name], running_row(name, progress)
        if progress is not None or before.state != "running":
            self.rows[name] = row
        if progress is None and run.result():
            self._end_current()
        # Drawing takes time from the workers' cores, so only what is new is drawn.
        if self._live and self.rows[name] != before:
            self._draw()

    def _end_current(self) -> None:
        run, self._current = self._current, None
        if run is None:
            return
        row = row_of(run.point(), "done" if run.result() else "failed", [run])
        self.rows[run.path.parent.name] = row
        if not self._live:
            ended = sum(each.state in ("done", "failed") for each in self.rows.values())
            self.console.print(row.line(f"[{ended}/{len(self.rows)}]"), markup=False)

    def _draw(self) -> None:
        assert self._live is not None
        self._live.update(points_table(list(self.rows.values()), self.console.height - 5), refresh=True)
