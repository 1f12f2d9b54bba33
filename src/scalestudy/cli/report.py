"""`scalestudy report`: what a study has shown so far."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """Forms of the report."""

    table = "table"
    csv = "csv"
    json = "json"
    html = "html"


def report(
    folder: Annotated[Path, typer.Argument(help="Results folder of a study.", metavar="DIR")],
    form: Annotated[Format, typer.Option("--format", help="Form of the report.")] = Format.table,
    file: Annotated[
        Path | None,
        typer.Option(
            "--out", help="File to write instead of printing (html: report/ in DIR).", metavar="FILE"
        ),
    ] = None,
) -> None:
    """Print or write the report of a study, whatever state it is in."""
    from scalestudy.cli.console import out
    from scalestudy.errors import UserError
    from scalestudy.files import write_atomically
    from scalestudy.report.write import render, write_report
    from scalestudy.study.store import StudyFolder

    opened, console = StudyFolder.open(folder), out()
    try:
        if file is not None:
            write_atomically(file, render(opened, form))
            console.print(f"Wrote {file}", markup=False)
        elif form is Format.html:
            console.print(f"Wrote {write_report(opened).html}", markup=False)
        else:
            print(render(opened, form, colour=console.is_terminal), end="")
    except OSError as error:
        raise UserError(
            "a file that can be written",
            f"{error.filename or file}: {error.strerror}",
            "Name another with --out.",
        ) from error
