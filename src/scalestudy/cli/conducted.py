"""What `run` and `train` share: a study run in this terminal, and the exit code that says how it went."""

import shlex
from typing import TYPE_CHECKING

from scalestudy.cli.console import err, out

if TYPE_CHECKING:
    from scalestudy.app.request import Request
    from scalestudy.launch.base import Options


def conducted(
    request: "Request",
    resume: str,
    options: "Options | None" = None,
    *,
    dry_run: bool = False,
    report: bool = True,
    verbose: bool = False,
) -> int:
    """Run what is missing of a study, and report.

    Args:
        request: The study.
        resume: The command that takes it up again.
        options: How to start it.
        dry_run: Print what would be done instead.
        report: Whether to write the report.
        verbose: Whether to print all of it, and not the decision alone.

    Returns:
        The exit code: 0 done, 1 a run failed, 130 interrupted.

    Raises:
        UserError: Before anything is started or written.
    """
    from scalestudy.app.run import Interrupted, run_study
    from scalestudy.cli.terminal import Terminal

    terminal = Terminal(verbose=verbose)
    if dry_run:
        print_dry_run(request, options)
        return 0
    try:
        result = run_study(request, listener=terminal, options=options, report=report)
    except Interrupted as interrupted:
        where = shlex.quote(str(request.target))
        text = (
            f"\nThe jobs go on. Watch them with: scalestudy status {where} --live"
            f"\nCancel them with: scalestudy cancel {where}"
            if interrupted.goes_on
            else f"\nInterrupted; finished runs are kept. Resume with: {resume}"
        )
        err().print(text, markup=False)
        return 130
    if result.overview.failed:
        err().print(f"Run what failed again with: {resume}", markup=False)
    return 1 if result.failures else 0


def print_dry_run(request: "Request", options: "Options | None" = None) -> None:
    """Print what running or submitting would do; nothing is started or written."""
    from scalestudy.app.run import dry_run
    from scalestudy.cli.terminal import Terminal

    for text in dry_run(request, options, listener=Terminal()):
        out().print(text, markup=False)
