"""The page of a study that goes on: it is written repeatedly, and loads itself again until the study ends.

It needs no server: a browser shows the file, also one in a mounted home. It draws no figures with Vega, whose
preparation would take time from the workers on the same cores.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from scalestudy.analysis.remaining import Remaining, begun, remaining
from scalestudy.launch.launcher import Overview, PointStatus, launcher_of
from scalestudy.report.point_lines import (
    PointLine,
    count_states,
    line_of,
    short_throughput,
)
from scalestudy.report.write_document import templates
from scalestudy.store.run_folder import RunFolder
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util import units
from scalestudy.util.files import make_inside, write_atomically
from scalestudy.util.own_package import version
from scalestudy.util.targets import REPORT

EVERY = 30.0
"""Seconds between two versions of the page, and after which a browser loads it again."""
CLOCK_FROM = 1800
"""If at least this many seconds remain, the time of day of the end is shown too."""
MOST_POINTS = 500
"""Largest number of points on the page."""
PLACES = {"running": 0, "done": 2, "missing": 3}
"""Places of states on the page; all others, which may need somebody, are between running and done."""
WIDTH, HEIGHT = 100, 24
"""Pixels of the curve of a run's losses."""
IN_ORDER = "the order of the study: seed by seed, rows shuffled"


def live_page(folder: Path) -> Path:
    """Path of the live page of a study."""
    return folder / REPORT / "live.html"


@dataclass(frozen=True)
class _Line:
    """A point on the page, with the losses of its run so far."""

    point: PointLine
    losses: tuple[float, ...]
    curve: str
    seconds: float | None


class LivePage:
    """Writes the page of a study while its points run, at most once in `every` seconds.

    Where the folder cannot be written to (another user's study, a full disk), there is no page. `shown` is
    called with the page's path once it is there.
    """

    def __init__(
        self,
        folder: Path,
        every: float = EVERY,
        shown: Callable[[Path], None] | None = None,
    ) -> None:
        self.path = live_page(folder)
        self.next = ""
        """What is next and why; "" for the order of the study."""
        self.reported = False
        """Whether the report of this state has been written, to which the last version leads."""
        self._folder, self._every = folder, every
        self._shown = shown
        self._written: float | None = None
        self._overview: Overview | None = None
        self._losses: dict[Path, tuple[float, ...]] = {}

    @property
    def was_shown(self) -> bool:
        """Whether the page has been written and shown."""
        return self._shown is None

    def update(self, overview: Overview) -> None:
        """Write the page, unless the last version is too new."""
        self._overview = overview
        now = time.monotonic()
        if self._written is None or now - self._written >= self._every:
            self._write(overview, live=True)

    def end(self) -> None:
        """Write the last version, which is not loaded again."""
        if self._overview is not None:
            self._write(self._overview, live=False)

    def _write(self, overview: Overview, *, live: bool) -> None:
        # Also where it fails: on a full disk, the next try is as late as the next version.
        self._written = time.monotonic()
        # Another user's study, or a full disk: the study goes on without a page.
        with suppress(OSError):
            make_inside(self.path.parent)
            # A browser may load it at any moment; a power cut may cost the last version.
            page = self._page(overview, live=live)
            write_atomically(self.path, page, durable=False)
            if self._shown:
                self._shown(self.path)
                self._shown = None

    def _page(self, overview: Overview, *, live: bool) -> str:
        study = StudyFolder.open(self._folder).study
        elapsed = {}
        for status in overview.points:
            since = begun(status)
            if since is not None:
                elapsed[status.name] = since
        # A queue takes points as fast as it has nodes, other launchers one after another.
        at_once = launcher_of(study).detached
        left = remaining(overview.points, elapsed, at_once=at_once)
        ordered = sorted(overview.points, key=_place)
        states = [status.state for status in overview.points]
        lines = []
        for status in ordered[:MOST_POINTS]:
            since = elapsed.get(status.name)
            lines.append(self._line(status, since))
        # A link to a report that is not there yet would be a dead one.
        report = self.path.parent / "report.html"
        page = (
            templates()
            .get_template("live.html.j2")
            .render(
                title=study.title or study.name,
                description=study.description or "",
                live=live,
                milliseconds=round(1000 * self._every),
                written=time.time(),
                counts=count_states(states),
                time=remaining_text(left, moving=bool(overview.open)),
                next=self._next(overview),
                reported=self.reported,
                lines=lines,
                more=len(ordered) - len(lines),
                report=report.name if report.exists() else "",
                version=version(),
                figure=short_throughput,
                duration=units.duration,
            )
        )
        return page + "\n"

    def _next(self, overview: Overview) -> str:
        if self.next:
            return self.next
        if not overview.upcoming:
            return ""
        status = overview.of(overview.upcoming[0])
        why = status.point.why or f"in {IN_ORDER}"
        return f"{status.name}, {why}"

    def _line(self, status: PointStatus, elapsed: float | None) -> _Line:
        losses: tuple[float, ...] = ()
        if status.run:
            done = status.state == "done"
            losses = self._losses_of(status.run, done=done)
        seconds = elapsed
        if status.result:
            seconds = status.result.training_seconds
        return _Line(line_of(status), losses, curve(losses), seconds)

    def _losses_of(self, run: RunFolder, *, done: bool) -> tuple[float, ...]:
        """Losses on the validation set, else on the training set, after each epoch so far."""
        if run.path in self._losses:
            return self._losses[run.path]
        # Epochs are appended while the run goes on, so they are read again until it has ended.
        values = []
        for epoch in run.epochs():
            loss = (epoch.validation or {}).get("loss", epoch.loss)
            if loss is not None and isfinite(loss):
                values.append(loss)
        losses = tuple(values)
        if done:  # an ended run's losses do not change
            self._losses[run.path] = losses
        return losses


def _place(status: PointStatus) -> int:
    return PLACES.get(status.state, 1)


def curve(losses: Sequence[float]) -> str:
    """Points of a polyline in a box of `WIDTH` by `HEIGHT` pixels; "" for fewer than two losses."""
    if len(losses) < 2:
        return ""
    low = min(losses)
    high = max(losses)
    # Losses that do not change are a line at one height.
    span = high - low or 1.0
    across = (WIDTH - 4) / (len(losses) - 1)
    places = []
    for index, loss in enumerate(losses):
        x = 2 + across * index
        below_top = (HEIGHT - 4) * (high - loss) / span
        y = 2 + below_top
        places.append(f"{x:.1f},{y:.1f}")
    return " ".join(places)


def remaining_text(left: Remaining, *, moving: bool) -> str:
    """Return text like `ends in 1:05:00 h (0:50:00 h … 2:00:00 h) · 12.1 of about 31 worker-hours`."""
    parts = []
    if left.seconds is not None:
        low, likely, high = left.seconds
        text = "ends in " if moving else "not run yet: "
        if left.unknown:
            text += "at least "
        text += units.duration(likely)
        if high - low >= 0.02 * likely:
            soonest, latest = units.duration(low), units.duration(high)
            text += f" ({soonest} … {latest})"
        if moving and likely >= CLOCK_FROM:
            end = time.localtime(time.time() + likely)
            text += time.strftime(", %a %H:%M", end)
        parts.append(text)
    elif left.unknown and moving:
        parts.append("end not known yet")
    spent = units.three_digits(left.hours)
    # Where three digits would show the same number twice, one is enough.
    if left.expected is not None and left.expected > 1.005 * left.hours:
        expected = units.three_digits(left.expected)
        parts.append(f"{spent} of about {expected} worker-hours")
    elif left.hours:
        parts.append(f"{spent} worker-hours")
    return " · ".join(parts)
