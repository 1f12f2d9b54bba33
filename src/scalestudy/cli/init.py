"""`scalestudy init`: a commented study file."""

from pathlib import Path
from typing import Annotated

import typer


def init(
    file: Annotated[Path, typer.Argument(help="Study file to write.")] = Path("study.toml"),
    task: Annotated[
        str | None,
        typer.Option(
            help='What is trained: "unet", "cnn", "resnet50", "keras:MODEL", or a Python file beside FILE; '
            "when absent a small U-Net that this machine trains within minutes."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
) -> None:
    """Write a commented study file for this machine's GPUs or cores, every key with its default."""
    from scalestudy.app.first_study import first_study
    from scalestudy.cli.console import out
    from scalestudy.hardware import cores, devices
    from scalestudy.study.parse import parse_study
    from scalestudy.util.errors import UserError
    from scalestudy.util.files import write_atomically

    if file.exists() and not force:
        raise UserError(
            "a new file", f"{file}, which exists", "Name another, or add --force to overwrite it."
        )
    study = first_study(task, gpus=devices.gpus(), cores=len(cores.granted()))
    parse_study(study.text, file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, study.text)
    except OSError as error:
        raise UserError("a file that can be written", f"{file}: {error.strerror}", "Name another.") from error
    out().print(f"Wrote {file}: {study.summary}. Run it with: scalestudy run {file}", markup=False)
