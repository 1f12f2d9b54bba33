"""Studies as they stand, looked at again and again; nothing is written, and nobody is waited for."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from scalestudy.analysis.epochs import read_epochs
from scalestudy.analysis.remaining import Remaining, begun, remaining
from scalestudy.conduct.follow import SHARE
from scalestudy.errors import ScalestudyError
from scalestudy.launch.base import Overview, PointStatus, launcher_of
from scalestudy.launch.queue.polling import Poller
from scalestudy.launch.status import study_status
from scalestudy.study.run_folder import EPOCHS, RunFolder
from scalestudy.study.store import StudyFolder

CURVES = 40
"""Runs under way whose losses are read: more are not on a screen."""
LINES = 200
BLOCK = 2**16


@dataclass(frozen=True)
class Watched:
    """A study as it stands.

    Attributes:
        path: Its folder.
        name: Its name; that of its folder if it cannot be read.
        overview: Its points; None if it cannot be read.
        wrong: Why not; "" if it can.
        remaining: How long it takes, and what it costs.
        losses: Training losses of runs by their point's name, epoch by epoch.
    """

    path: Path
    name: str
    overview: Overview | None = None
    wrong: str = ""
    remaining: Remaining | None = None
    losses: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def points(self) -> list[PointStatus]:
        """Its points; none if it cannot be read."""
        return self.overview.points if self.overview else []


class Watcher:
    """Looks at one study.

    Args:
        path: Its folder, which may appear later, or vanish.
        wait: Seconds to wait for a queue's first answer.
    """

    def __init__(self, path: Path, wait: float = 0.0) -> None:
        self.path = path
        self._poller = Poller(wait)
        self._known: Overview | None = None
        self._losses: dict[Path, tuple[int, list[float]]] = {}

    def look(self, chosen: str | None = None) -> Watched:
        """The study as it stands; of the `chosen` point also the losses, whatever its state."""
        try:
            folder = StudyFolder.open(self.path)
            launcher = launcher_of(folder.study)
            overview = study_status(folder, known=_there(self._known), poller=self._poller)
        except (ScalestudyError, OSError) as error:
            self._known = None
            wrong = error.received if isinstance(error, ScalestudyError) else str(error)
            return Watched(self.path, self.path.name, wrong=wrong)
        self._known = overview
        running = [each for each in overview.points if each.state == "running"]
        elapsed = {each.name: since for each in running if (since := begun(each)) is not None}
        drawn = running[:CURVES] + [each for each in overview.points if each.name == chosen]
        return Watched(
            self.path, folder.name, overview,
            remaining=remaining(overview.points, elapsed, at_once=launcher.detached),
            losses={each.name: self._curve(each.run) for each in drawn if each.run},
        )  # fmt: skip

    def _curve(self, run: RunFolder) -> list[float]:
        changed = _changed(run.path / EPOCHS)
        known = self._losses.get(run.path)
        if known is None or known[0] != changed:
            known = self._losses[run.path] = (changed, read_epochs(run.path)[0].column("loss"))
        return known[1]


def _there(known: Overview | None) -> Overview | None:
    """What is known already, without points whose result was taken away since, to have them run anew."""
    if known is None:
        return None
    there = [each for each in known.points if each.run is None or _changed(each.run.path / "result.json")]
    return replace(known, points=there)


def _changed(file: Path) -> int:
    """When a file was changed, in nanoseconds of Unix time; 0 without one."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


class Watching:
    """Looks at studies in a thread of its own, so that keys are answered whatever a look takes.

    Args:
        watchers: One for each study.
        interval: Seconds between two looks; more where a look takes long.
        on_news: Is called after each look.
    """

    def __init__(self, watchers: Sequence[Watcher], interval: float, on_news: Callable[[], object]) -> None:
        self._watchers, self._interval, self._on_news = watchers, interval, on_news
        self._ends = threading.Event()
        self.chosen: str | None = None
        """Point whose losses are wanted."""
        self._seen: list[Watched] = []
        self._error: Exception | None = None

    @property
    def seen(self) -> list[Watched]:
        """The studies as they were seen last.

        Raises:
            Exception: What has ended the looking.
        """
        if self._error is not None:
            raise self._error
        return self._seen

    def __enter__(self) -> "Watching":
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()

    def _go_on(self) -> None:
        import time

        while not self._ends.is_set():
            started = time.monotonic()
            try:
                self._seen = [watcher.look(self.chosen) for watcher in self._watchers]
            except Exception as error:  # for who watches: the picture would stand still
                self._error = error
                self._ends.set()
            self._on_news()
            self._ends.wait(max(self._interval, (time.monotonic() - started) / SHARE))


def last_lines(logs: Sequence[tuple[str, Path]], most: int = LINES) -> list[str]:
    """The last lines of a run's logs, each with what stands before it; those of several one after another."""
    found: list[str] = []
    for prefix, file in logs:
        try:
            if not file.is_file():  # a pipe in its place would be waited for
                continue
            with open(file, "rb") as stream:
                stream.seek(max(stream.seek(0, 2) - BLOCK, 0))
                lines = stream.read().decode(errors="replace").splitlines()
        except OSError:
            continue
        found += [prefix + line for line in lines[-max(1, most // len(logs)) :]]
    return found
