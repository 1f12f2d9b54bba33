"""`scalestudy submit`: submit the missing points of a study to its queue."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.console import out
from scalestudy.cli.options import AtMostOption, DryRunOption, OrderOption, ResultsOption, StudyFile
from scalestudy.util.errors import UserError


def submit(
    study: StudyFile = Path("study.toml"),
    folder: ResultsOption = None,
    dry_run: DryRunOption = False,
    order: OrderOption = None,
    at_most: AtMostOption = None,
    after: Annotated[
        str | None,
        typer.Option(help="Job that must succeed before these start.", metavar="JOB"),
    ] = None,
    resubmit: Annotated[
        int, typer.Option(min=0, help="How often a failed point may be submitted again.", metavar="N")
    ] = 3,
    scripts: Annotated[
        bool, typer.Option("--all", help="With --dry-run, print every job script, not only the first.")
    ] = False,
) -> None:
    """Submit the missing points of a study to its queue, Slurm or PBS Professional.

    You can log out afterwards: no Scalestudy process has to keep running. Points that are done, queued or
    running are left alone. A failed point is submitted again. Its run continues if it was interrupted (by the
    time limit, a node failure, preemption or cancellation) and has a checkpoint; otherwise it starts anew.

    With --at-most K, call `submit` again for the remaining points when jobs have ended.
    """
    from scalestudy.app.run import submit_study
    from scalestudy.app.survey import request_of
    from scalestudy.cli.run import print_dry_run
    from scalestudy.cli.terminal import Terminal
    from scalestudy.launch.base import Options, launcher_of, queues

    request = request_of(study, folder)
    loaded = request.study
    if not launcher_of(loaded).detached:
        names = " or ".join(f'"{name}"' for name in queues())
        raise UserError(
            f"launch.on = {names} for `scalestudy submit`",
            f'"{loaded.launch.on}"{loaded.place.of("launch.on", "launch")}',
            f"Set on = {names} under [launch], or run it on this machine: scalestudy run {study}",
        )
    options = Options(
        order=order,
        at_most=at_most,
        after=after,
        resubmissions=resubmit,
        scripts=scripts,
    )
    if dry_run:
        print_dry_run(request, options)
        return
    where = shlex.quote(str(request.target))
    if submit_study(request, options, listener=Terminal()):
        out().print(f"Watch it with: scalestudy status {where} --live", markup=False)
    else:
        out().print(f"Nothing was submitted. See scalestudy status {where}", markup=False)
