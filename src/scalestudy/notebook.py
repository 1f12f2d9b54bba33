"""`scalestudy.run` and `scalestudy.open`: studies from Python, with the results as objects."""

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scalestudy.app.listener import Listener
from scalestudy.app.result import StudyResult
from scalestudy.app.run import run_study
from scalestudy.app.survey import request_of
from scalestudy.launch.base import Overview
from scalestudy.launch.status import study_status
from scalestudy.study.state import ENDED
from scalestudy.study.store import StudyFolder

if TYPE_CHECKING:
    from rich.progress import Progress


def run(
    study: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    listener: Listener | None = None,
    progress: bool = False,
    report: bool = True,
) -> StudyResult:
    """Run what is missing of a study, as the command `scalestudy run` does; finished runs are not repeated.

    A failed point raises nothing: it is in `failures` of what is given back.

    Args:
        study: The study file.
        out: The results folder; studies/NAME beside the study file when None.
        listener: Is told what happens; without one, notes (what a data set leaves out) are warnings.
        progress: Show a bar, where no listener is given.
        report: Whether to write the report at the end.

    Raises:
        UserError: If the study is not right; nothing has been started or written then.
        RunError: If a queue cannot be reached.
        KeyboardInterrupt: If it was interrupted; finished runs are kept.
    """
    if listener is None:
        listener = ProgressBar() if progress else Warner()
    return run_study(request_of(study, out), listener=listener, report=report)


def open(folder: str | os.PathLike[str]) -> StudyResult:
    """A study that was run before, whatever state it is in.

    Args:
        folder: The results folder.

    Raises:
        UserError: If it is none, naming studies nearby.
    """
    store = StudyFolder.open(os.fspath(folder))
    return StudyResult(store, study_status(store))


class Warner(Listener):
    """Shows nothing but notes."""

    def note(self, text: str) -> None:
        """As a warning."""
        warnings.warn(text, stacklevel=2)


class ProgressBar(Warner):
    """Shows how many samples are prepared, then how many points have ended."""

    def __init__(self) -> None:
        self._bar: Progress | None = None

    @contextmanager
    def preparing(self, source: str) -> Iterator[Callable[[int, int | None], None]]:
        """A bar of samples."""
        with _progress() as bar:
            task = bar.add_task(f"Preparing {source}", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    @contextmanager
    def downloading(self, what: str, unit: str = "bytes") -> Iterator[Callable[[int, int | None], None]]:
        """A bar of what has come."""
        with _progress() as bar:
            task = bar.add_task(f"Fetching {what} ({unit})", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    @contextmanager
    def following(self, overview: Overview) -> Iterator[None]:
        """A bar of points."""
        with _progress() as bar:
            self._bar = bar
            bar.add_task("Points", total=len(overview.points))
            self.seen(overview)
            yield
        self._bar = None

    def seen(self, overview: Overview) -> None:
        """Move it."""
        if self._bar is not None:
            ended = sum(status.state in ENDED for status in overview.points)
            self._bar.update(self._bar.task_ids[0], completed=ended)


def _progress() -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
