"""What is told of a study while it is conducted. A terminal or a notebook overrides what it wants to show."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings
    from scalestudy.launch.base import Overview, PointStatus
    from scalestudy.report.write import ReportPaths
    from scalestudy.study.store import StudyFolder


class ProgressCallback(Protocol):
    """Is told how much of `total` (if known) is done."""

    def __call__(self, done: int, total: int | None = None, /) -> None:
        """To be called again and again."""


class Listener:
    """Hears everything and shows nothing."""

    def note(self, text: str) -> None:
        """Something the user should know."""

    @contextmanager
    def progress(self, what: str, total: int | None = None, unit: str = "") -> "Iterator[ProgressCallback]":
        """While something takes its time: "Preparing digits"; what is given takes the amount done."""
        yield lambda done, total=total: None

    def already_done(self, count: int, total: int) -> None:
        """Points that were done before."""

    def submitted(self, name: str, job: str) -> None:
        """A point that a queue has taken, and its job."""

    @contextmanager
    def following(self, overview: "Overview") -> Iterator[None]:
        """While points run; `overview` is how they stand at its start."""
        yield

    def seen(self, overview: "Overview") -> None:
        """How the points stand now; told only while they are followed."""

    def failed(self, status: "PointStatus") -> None:
        """A point that has failed or was cancelled, told when nothing runs any more."""

    def reported(self, folder: "StudyFolder", study: "Findings", files: "ReportPaths") -> None:
        """The report has been written."""
