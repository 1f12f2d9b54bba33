"""`scalestudy run`: the missing points of a study."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from scalestudy.cli.options import (
    AtMostOption,
    DryRunOption,
    OrderOption,
    ReportOption,
    ResultsOption,
    StudyFile,
    VerboseOption,
)

if TYPE_CHECKING:
    from scalestudy.app.survey import Request
    from scalestudy.launch.base import Options


def run(
    study: StudyFile = Path("study.toml"), folder: ResultsOption = None, dry_run: DryRunOption = False,
    order: OrderOption = None, at_most: AtMostOption = None, report: ReportOption = True,
    verbose: VerboseOption = False,
) -> None:  # fmt: skip
    """Run the missing points of a study, then write its report.

    After Ctrl-C, run it again to continue. With launch.on = "slurm" or "pbs" the points are submitted and
    watched; Ctrl-C leaves their jobs alone. With --at-most K the next point is submitted when one has ended.
    """
    from scalestudy.app.survey import request_of
    from scalestudy.launch.base import Options

    resume = shlex.join(["scalestudy", "run", str(study), *(["--out", str(folder)] if folder else [])])
    options = Options(order=order, at_most=at_most)
    request = request_of(study, folder)
    code = conducted(request, resume, options, dry_run=dry_run, report=report, verbose=verbose)
    raise typer.Exit(code)


def conducted(
    request: "Request", resume: str, options: "Options | None" = None, *, dry_run: bool = False,
    report: bool = True, verbose: bool = False,
) -> int:  # fmt: skip
    """Run the missing points of a study, and report; `resume` is the command that continues it.

    Returns the exit code: 0 if everything is done, 1 if a run failed, 130 after an interruption.

    Raises:
        UserError: Before anything is started or written.
    """
    from scalestudy.app.run import Interrupted, run_study
    from scalestudy.cli.console import err
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
            f"\nThe jobs continue. Watch them with: scalestudy status {where} --live"
            f"\nCancel them with: scalestudy cancel {where}"
            if interrupted.goes_on
            else f"\nInterrupted; finished runs are kept. Resume with: {resume}"
        )
        err().print(text, markup=False)
        return 130
    if result.overview.failed:
        err().print(f"Run the failed points again with: {resume}", markup=False)
    return 1 if result.failures else 0


def print_dry_run(request: "Request", options: "Options | None" = None) -> None:
    """Print what running or submitting would do, without starting or writing anything."""
    from scalestudy.app.run import dry_run
    from scalestudy.cli.console import out
    from scalestudy.cli.terminal import Terminal

    for text in dry_run(request, options, listener=Terminal()):
        out().print(text, markup=False)
