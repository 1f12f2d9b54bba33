"""`scalestudy run`: all that is missing of a study."""

import shlex
from pathlib import Path
from typing import Annotated

import typer


def run(
    study: Annotated[Path, typer.Argument(help="Study file.")],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Results folder; studies/NAME beside the study file when absent.", metavar="DIR"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the points; start and write nothing.")
    ] = False,
    report: Annotated[bool, typer.Option(help="Write the report at the end.")] = True,
) -> None:
    """Run what is missing of a study, then write its report. Ctrl-C leaves a folder that can be resumed.

    With launch.on = "slurm" the points are submitted and watched; Ctrl-C leaves their jobs alone.
    """
    from scalestudy.cli.execute import Order, execute
    from scalestudy.study.file import load_study, read_text
    from scalestudy.study.store import default_folder

    loaded = load_study(study)
    target = folder or default_folder(study, loaded.name)
    resume = shlex.join(["scalestudy", "run", str(study), *(["--out", str(folder)] if folder else [])])
    order = Order(loaded, read_text(study), study.parent, target, resume)
    raise typer.Exit(execute(order, dry_run=dry_run, report=report))
