"""`scalestudy.run` and `scalestudy.open`: studies from Python, with the results as objects."""

import os
import warnings

from scalestudy.app.listener import Listener
from scalestudy.app.result import StudyResult
from scalestudy.app.run import run_study
from scalestudy.app.survey import request_of
from scalestudy.launch.status import study_status
from scalestudy.study.store import StudyFolder


def run(
    study: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, *,
    listener: Listener | None = None, progress: bool = False, report: bool = True,
) -> StudyResult:  # fmt: skip
    """Run what is missing of a study, as the command `scalestudy run` does; finished runs are not repeated.

    A failed point raises nothing: it is in `failures` of what is given back.

    Args:
        study: The study file.
        out: The results folder; studies/NAME beside the study file when None.
        listener: Is told what happens; without one, notes (what a data set leaves out) are warnings.
        progress: Show how far it is, as the command does, where no listener is given.
        report: Whether to write the report at the end.

    Raises:
        UserError: If the study is not right; nothing has been started or written then.
        RunError: If a queue cannot be reached.
        KeyboardInterrupt: If it was interrupted; finished runs are kept.
    """
    if listener is None and progress:
        from scalestudy.cli.terminal import Terminal

        listener = Terminal()
    return run_study(request_of(study, out), listener=listener or Warner(), report=report)


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
