"""`scalestudy init`: a commented study file."""

from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.options import ForceOption, TaskOption


def init(
    file: Annotated[Path, typer.Argument(help="Study file to write.")] = Path("study.toml"),
    task: TaskOption = None,
    force: ForceOption = False,
) -> None:
    """Write a commented study file for this machine, with the default of every key."""
    from scalestudy.app.first_study import first_study
    from scalestudy.cli.console import out, write_new
    from scalestudy.hardware import cores, devices
    from scalestudy.study.parse import parse_study

    study = first_study(task, gpus=devices.gpus(), cores=len(cores.granted()))
    parse_study(study.text, file)
    write_new(file, study.text, force=force)
    out().print(f"Wrote {file}: {study.summary}. Run it with: scalestudy run {file}", markup=False)
