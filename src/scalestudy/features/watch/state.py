"""A study's state, read again and again in a thread; nothing is written, and no queue is waited for."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from scalestudy.analysis.epochs import read_epochs
from scalestudy.analysis.remaining import Remaining, begun, remaining
from scalestudy.app.follow import SHARE
from scalestudy.launch.base import Overview, PointStatus, launcher_of
from scalestudy.launch.queue.polling import Poller
from scalestudy.launch.status import study_status
from scalestudy.study.run_folder import EPOCHS, RunFolder
from scalestudy.study.store import StudyFolder
from scalestudy.util.errors import ScalestudyError

CURVES = 40
"""Runs under way whose losses are read: more are not on a screen."""


@dataclass(frozen=True)
class StudyState:
    """A study as it stands.

    Attributes:
        name: Its name; that of its folder if it cannot be read.
        overview: Its points; None if it cannot be read.
        error: Why not; "" if it can.
        remaining: How long it takes, and what it costs.
        losses: Training losses of runs under way by their point's name, epoch by epoch.
    """

    name: str
    overview: Overview | None = None
    error: str = ""
    remaining: Remaining | None = None
    losses: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def points(self) -> list[PointStatus]:
        """Its points; none if it cannot be read."""
        return self.overview.points if self.overview else []


class StateReader:
    """Reads the state of one study.

    Args:
        path: Its folder, which may appear later, or vanish.
        wait: Seconds to wait for a queue's first answer.
    """

    def __init__(self, path: Path, wait: float = 0.0) -> None:
        self.path = path
        self._poller = Poller(wait)
        self._known: Overview | None = None
        self._losses: dict[Path, tuple[int, list[float]]] = {}

    def read(self) -> StudyState:
        """The study as it stands."""
        try:
            folder = StudyFolder.open(self.path)
            detached = launcher_of(folder.study).detached
            overview = study_status(folder, known=self._still_stored(), poller=self._poller)
        except (ScalestudyError, OSError) as error:
            self._known = None
            reason = error.received if isinstance(error, ScalestudyError) else str(error)
            return StudyState(self.path.name, error=reason)
        self._known = overview
        running = [status for status in overview.points if status.state == "running"]
        elapsed = {status.name: since for status in running if (since := begun(status)) is not None}
        return StudyState(
            folder.name, overview,
            remaining=remaining(overview.points, elapsed, at_once=detached),
            losses={status.name: self._curve(status.run) for status in running[:CURVES] if status.run},
        )  # fmt: skip

    def _still_stored(self) -> Overview | None:
        """The last overview, without points whose result was taken away since, to have them run anew."""
        if self._known is None:
            return None
        return replace(
            self._known,
            points=[
                status
                for status in self._known.points
                if status.run is None or _changed(status.run.path / "result.json")
            ],
        )

    def _curve(self, run: RunFolder) -> list[float]:
        changed = _changed(run.path / EPOCHS)
        known = self._losses.get(run.path)
        if known is None or known[0] != changed:
            known = self._losses[run.path] = (changed, read_epochs(run.path)[0].column("loss"))
        return known[1]


def _changed(file: Path) -> int:
    """When a file was changed, in nanoseconds of Unix time; 0 without one."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


class StatePoller:
    """Reads a study in a thread of its own, so that keys are answered however long that takes.

    Args:
        reader: Of the study.
        interval: Seconds between two readings; more where one takes long.
    """

    def __init__(self, reader: StateReader, interval: float) -> None:
        self._reader, self._interval = reader, interval
        self._ends = threading.Event()
        self.thread = threading.Thread(target=self._poll, daemon=True)
        self._state: StudyState | None = None
        self._error: Exception | None = None

    @property
    def state(self) -> StudyState | None:
        """The study as it was read last; None before it was.

        Raises:
            Exception: What has ended the reading.
        """
        if self._error is not None:
            raise self._error
        return self._state

    def __enter__(self) -> "StatePoller":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()

    def _poll(self) -> None:
        while not self._ends.is_set():
            started = time.monotonic()
            try:
                self._state = self._reader.read()
            except Exception as error:  # for who looks at the screen: it would stand still
                self._error = error
                return
            self._ends.wait(max(self._interval, (time.monotonic() - started) / SHARE))
