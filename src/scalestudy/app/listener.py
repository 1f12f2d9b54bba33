"""What is told of a study while it is conducted. A terminal or a notebook overrides what it wants to show."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings
    from scalestudy.launch.base import Overview, PointStatus
    from scalestudy.report.write import ReportPaths
    from scalestudy.study.store import StudyFolder


class Listener:
    """Hears everything and shows nothing."""

    def note(self, text: str) -> None:
        """Something the user should know."""

    @contextmanager
    def preparing(self, source: str) -> Iterator[Callable[[int, int | None], None]]:
        """While a data set is prepared; what is given takes the samples done and their number, if known."""
        yield lambda done, total: None

    @contextmanager
    def downloading(self, what: str, unit: str = "bytes") -> Iterator[Callable[[int, int | None], None]]:
        """While a public data set is fetched; what is given takes how many bytes (or samples) of how many."""
        yield lambda done, total: None

    @contextmanager
    def looking(self, what: str) -> Iterator[Callable[[int, int | None], None]]:
        """While samples are looked at or compared; what is given is as that of `preparing`."""
        yield lambda done, total: None

    @contextmanager
    def importing(self, task: str) -> Iterator[None]:
        """While a task file is asked about its data."""
        yield

    @contextmanager
    def building(self, task: str) -> Iterator[None]:
        """While a user's model is built once, for its weights."""
        yield

    @contextmanager
    def computing(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """While a trained model is used; what is given takes how much of `total` is done."""
        yield lambda done: None

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
