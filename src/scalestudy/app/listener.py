"""Events of a study while it runs. A terminal or a notebook overrides the methods for what it shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings
    from scalestudy.launch.launcher import Overview, PointStatus
    from scalestudy.report.study_document import ReportPaths
    from scalestudy.store.study_folder import StudyFolder


class ProgressCallback(Protocol):
    """Receives how much of `total` (if known) is done."""

    def __call__(self, done: int, total: int | None = None, /) -> None:
        """Called repeatedly."""


class Listener:
    """Receives all events and shows nothing."""

    def note(self, text: str) -> None:
        """Report something that the user should know."""

    @contextmanager
    def progress(self, what: str, total: int | None = None, unit: str = "") -> "Iterator[ProgressCallback]":
        """Report a longer task such as "Preparing digits"; yields a callback for the amount done."""
        yield lambda done, total=total: None

    def already_done(self, count: int, total: int) -> None:
        """Report how many points were done before."""

    def submitted(self, name: str, job: str) -> None:
        """Report a point that the queue has accepted, and its job."""

    @contextmanager
    def following(self, overview: "Overview") -> Iterator[None]:
        """Enclose the time while points run; `overview` is their state at the start."""
        yield

    def points_changed(self, overview: "Overview") -> None:
        """Report the current state of the points; called only within `following`."""

    def failed(self, status: "PointStatus") -> None:
        """Report a point that failed or was cancelled, after everything has ended."""

    def reported(self, folder: "StudyFolder", study: "Findings", files: "ReportPaths") -> None:
        """Report that the report has been written."""
