"""`scalestudy run`: the missing points of a study."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from scalestudy.cli.console import err, out
from scalestudy.cli.options import (
    AtMostOption,
    DryRunOption,
    OrderOption,
    ReportOption,
    ResultsOption,
    StudyFile,
    VerboseOption,
)
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.app.survey import Request
    from scalestudy.app.until import Until
    from scalestudy.launch.base import Options


UntilOption = Annotated[
    Literal["decided"] | None,
    typer.Option(
        help="Run only what the decision needs, until it stands.", show_default="run the whole grid"
    ),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        help="With --until, the most it may cost, in hours of the billed unit (by default workers): 20h.",
        metavar="HOURS",
        show_default="the cost of five seeds of the grid",
    ),
]
SeedsOption = Annotated[
    int | None,
    typer.Option(help="With --until, the most seeds of a row.", min=2, metavar="N", show_default="26"),
]


def run(
    study: StudyFile = Path("study.toml"),
    folder: ResultsOption = None,
    dry_run: DryRunOption = False,
    order: OrderOption = None,
    at_most: AtMostOption = None,
    repeat: Annotated[
        bool,
        typer.Option("--repeat-disturbed", help="Also repeat runs on whose cores other programs computed."),
    ] = False,
    report: ReportOption = True,
    verbose: VerboseOption = False,
    until: UntilOption = None,
    budget: BudgetOption = None,
    seeds_at_most: SeedsOption = None,
) -> None:
    """Run the missing points of a study, then write its report.

    With --until decided, time every row first, and train only what the decision needs, with as many seeds as
    it needs.

    After Ctrl-C, run it again to continue. With launch.on = "slurm" or "pbs" the points are submitted and
    watched; Ctrl-C leaves their jobs alone. With --at-most K the next point is submitted when one has ended.
    """
    from scalestudy.app.survey import request_of
    from scalestudy.app.until import Until
    from scalestudy.launch.base import Options

    resume = shlex.join(["scalestudy", "run", str(study), *(["--out", str(folder)] if folder else [])])
    options = Options(order=order, at_most=at_most, repeat=repeat)
    request = request_of(study, folder)
    limits = None
    if until:
        limits = Until(_hours(budget), seeds_at_most)
        resume += " --until decided"
        resume += f" --budget {shlex.quote(budget)}" if budget else ""
        resume += f" --seeds-at-most {seeds_at_most}" if seeds_at_most else ""
    elif budget or seeds_at_most:
        raise UserError(
            "--until decided with --budget and --seeds-at-most", "neither", "Add --until decided."
        )
    code = conducted(request, resume, options, dry_run=dry_run, report=report, verbose=verbose, until=limits)
    raise typer.Exit(code)


def _hours(text: str | None) -> float | None:
    from scalestudy.util.units import seconds_of

    if text is None:
        return None
    try:
        return seconds_of(text) / 3600
    except ValueError as error:
        raise UserError(str(error), repr(text), "Correct --budget.") from None


def conducted(
    request: "Request",
    resume: str,
    options: "Options | None" = None,
    *,
    dry_run: bool = False,
    report: bool = True,
    verbose: bool = False,
    until: "Until | None" = None,
) -> int:
    """Run the missing points of a study, and report; `resume` is the command that continues it.

    Returns the exit code: 0 if everything is done, 1 if a run failed, 130 after an interruption.

    Raises:
        UserError: Before anything is started or written.
    """
    from scalestudy.app.run import Interrupted, run_study
    from scalestudy.app.until import run_until_decided
    from scalestudy.cli.terminal import Terminal

    terminal = Terminal(verbose=verbose)
    if dry_run:
        print_dry_run(request, options, until)
        return 0
    try:
        if until is None:
            result = run_study(request, listener=terminal, options=options, report=report)
        else:
            result = run_until_decided(request, until, listener=terminal, options=options, report=report)
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
    if options and (busy := result.overview.disturbed):
        count = f"{len(busy)} of {len(result.overview.points)} runs"
        text = (
            f"Other programs used the cores of {count}, so their times are too long. "
            f"Repeat them when the machine is idle: {resume} --repeat-disturbed"
        )
        err().print(text, markup=False)
    if result.overview.failed:
        err().print(f"Run the failed points again with: {resume}", markup=False)
    return 1 if result.failures else 0


def print_dry_run(request: "Request", options: "Options | None" = None, until: "Until | None" = None) -> None:
    """Print what running or submitting would do, without starting or writing anything."""
    from scalestudy.app.run import dry_run
    from scalestudy.app.until import dry_run_until_decided
    from scalestudy.cli.terminal import Terminal

    texts = (
        dry_run(request, options, listener=Terminal())
        if until is None
        else dry_run_until_decided(request, until, options, listener=Terminal())
    )
    for text in texts:
        out().print(text, markup=False)
