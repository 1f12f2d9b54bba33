"""`scalestudy init`: a short study file."""

import tomllib
from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.console import out, write_new
from scalestudy.cli.options import ForceOption, TaskOption


def init(
    file: Annotated[Path, typer.Argument(help="Study file to write.")] = Path("study.toml"),
    task: TaskOption = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Images to train on, with classes or masks: a folder, relative to FILE.",
            show_default="the task's own, or digits",
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write a short study file for this machine."""
    from scalestudy.app.first_study import first_study
    from scalestudy.config.parse import study_of
    from scalestudy.hardware import cores, devices

    study = first_study(task, data, gpus=devices.gpus(), cores=len(cores.granted()), folder=file.parent)
    study_of(tomllib.loads(study.text), file)
    write_new(file, study.text, force=force)
    out().print(f"Wrote {file}: {study.summary}. Run it with: scalestudy run {file}", markup=False)
