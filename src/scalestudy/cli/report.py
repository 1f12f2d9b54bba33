"""`scalestudy report`: what a study has shown so far."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(help="Results folder of a study.", metavar="DIR")],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="Form of the report: table, csv, json, html, parquet, parquet-runs (a row a run),"
            " extrap (Extra-P's text input), or another package's.",
            metavar="FORMAT",
        ),
    ] = "table",
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
    from scalestudy.report.formats import Medium, format_of
    from scalestudy.report.write import PAGE, render, write_report
    from scalestudy.study.store import StudyFolder

    format_of(form)
    opened, console = StudyFolder.open(folder), out()
    try:
        if file is not None:
            write_atomically(file, render(opened, form))
            console.print(f"Wrote {file}", markup=False)
        elif form == PAGE:
            console.print(f"Wrote {write_report(opened).page}", markup=False)
        else:
            content = render(opened, form, Medium(colour=console.is_terminal))
            if isinstance(content, bytes):
                raise UserError(
                    "a file to write to", f"--format {form}, which is no text", "Name one with --out."
                )
            print(content, end="")
    except OSError as error:
        raise UserError(
            "a file that can be written",
            f"{error.filename or file}: {error.strerror}",
            "Name another with --out.",
        ) from error
