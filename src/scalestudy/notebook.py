"""`scalestudy.run`, `scalestudy.open`, `scalestudy.demo`: studies from Python, their results as objects."""

import os
import sys
import traceback
import warnings
from typing import TYPE_CHECKING

from scalestudy.app.follow import Listener
from scalestudy.app.plan import request_of
from scalestudy.app.result import StudyResult
from scalestudy.app.run_study import run_study
from scalestudy.launch.study_status import study_status
from scalestudy.store.study_folder import StudyFolder

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings


def run(
    study: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    listener: Listener | None = None,
    progress: bool = False,
    report: bool = True,
) -> StudyResult:
    """Run the missing points of a study, like the command `scalestudy run`. Finished runs are not repeated.

    A failed point raises no error; it is listed in `failures` of the result.

    Args:
        study: Path of the study file.
        out: Results folder. If None, studies/NAME beside the study file.
        listener: Receives events. Without one, notes (such as files left out of a data set) are warnings.
        progress: Whether to show progress like the command, if there is no listener.
        report: Whether to write the report at the end.

    Raises:
        UserError: The study is invalid. Nothing was started or written.
        RunError: A queue cannot be reached.
        KeyboardInterrupt: The study was interrupted. Finished runs are kept.
    """
    if listener is None and progress:
        from scalestudy.cli.terminal_listener import Terminal

        listener = Terminal()
    return run_study(
        request_of(study, out),
        listener=listener or Warner(),
        report=report,
    )


def open(folder: str | os.PathLike[str]) -> StudyResult:
    """Open the results of a study, finished or not.

    Args:
        folder: Results folder.

    Raises:
        UserError: The folder is not a results folder; the message names studies nearby.
    """
    store = StudyFolder.open(os.fspath(folder))
    return StudyResult(store, study_status(store))


def demo() -> "Findings":
    """The published study that `scalestudy demo` reports on, analysed like `StudyResult.findings`."""
    from scalestudy.features.imported.published import published_findings

    return published_findings()


class Warner(Listener):
    """A listener that turns notes into warnings, and ignores everything else."""

    def note(self, text: str) -> None:
        """Issue a warning at the line that called this package."""
        names = [
            frame.f_globals["__name__"]
            for frame, _ in traceback.walk_stack(sys._getframe())
        ]
        ours = [
            level for level, name in enumerate(names) if name.startswith("scalestudy.")
        ]
        warnings.warn(text, stacklevel=2 + ours[-1])
