"""`scalestudy init`: a commented study file."""

from pathlib import Path
from typing import Annotated

import typer


def init(
    file: Annotated[Path, typer.Argument(help="Study file to write.")] = Path("study.toml"),
    task: Annotated[
        str,
        typer.Option(
            help='What is trained: "unet", "cnn", "resnet50", "keras:MODEL", or a Python file beside FILE.'
        ),
    ] = "unet",
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
) -> None:
    """Write a commented study file, every key with its default."""
    from scalestudy.cli.console import out
    from scalestudy.study.parse import parse_study
    from scalestudy.study.template import study_template
    from scalestudy.util.errors import UserError
    from scalestudy.util.files import write_atomically

    if file.exists() and not force:
        raise UserError(
            "a new file", f"{file}, which exists", "Name another, or add --force to overwrite it."
        )
    text = study_template(task)
    parse_study(text, file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text)
    except OSError as error:
        raise UserError("a file that can be written", f"{file}: {error.strerror}", "Name another.") from error
    out().print(f"Wrote {file}. Run it with: scalestudy run {file}", markup=False)
