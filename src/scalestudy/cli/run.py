"""`scalestudy run`: all that is missing of a study."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

OrderOption = Annotated[
    Literal["blocks", "rows"] | None,
    typer.Option(
        help="Order of runs: for each seed a block of all rows, shuffled; or all seeds of a row before the "
        "next row. When absent the order that the study has; blocks for a new one."
    ),
]


def run(
    study: Annotated[Path, typer.Argument(help="Study file.")] = Path("study.toml"),
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Results folder; studies/NAME beside the study file when absent.", metavar="DIR"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the points; start and write nothing.")
    ] = False,
    order: OrderOption = None,
    report: Annotated[bool, typer.Option(help="Write the report at the end.")] = True,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Print all of the report at the end, not the decision alone."),
    ] = False,
) -> None:
    """Run what is missing of a study, then write its report. Ctrl-C leaves a folder that can be resumed.

    With launch.on = "slurm" or "pbs" the points are submitted and watched; Ctrl-C leaves their jobs alone.
    """
    from scalestudy.app.request import request_of
    from scalestudy.cli.conducted import conducted
    from scalestudy.launch.base import Options

    resume = shlex.join(["scalestudy", "run", str(study), *(["--out", str(folder)] if folder else [])])
    options = Options(order=order)
    request = request_of(study, folder)
    code = conducted(request, resume, options, dry_run=dry_run, report=report, verbose=verbose)
    raise typer.Exit(code)
