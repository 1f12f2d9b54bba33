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
            "--out", help="File to write instead of printing (html: report.html in DIR).", metavar="FILE"
        ),
    ] = None,
) -> None:
    """Print or write the report of a study, whatever state it is in."""
    from scalestudy.analysis.read import read_study
    from scalestudy.cli.console import out
    from scalestudy.errors import UserError
    from scalestudy.report.tabular import to_csv, to_json
    from scalestudy.report.terminal import print_report, render_text
    from scalestudy.report.write import write_html, write_report
    from scalestudy.study.atomic import write_atomically
    from scalestudy.study.store import StudyFolder

    opened = StudyFolder.open(folder)
    try:
        if form is Format.html:
            written = write_html(opened, file) if file else write_report(opened).html
            out().print(f"Report: {written}", markup=False)
            return
        study = read_study(opened)
        if form is Format.table and file is None:
            print_report(study, out())
            return
        text = (
            to_csv(study.rows)
            if form is Format.csv
            else to_json(study)
            if form is Format.json
            else render_text(study)
        )
        if file is None:
            print(text, end="")
        else:
            write_atomically(file, text)
            out().print(f"Wrote {file}", markup=False)
    except OSError as error:
        raise UserError(
            "a file that can be written",
            f"{error.filename or file}: {error.strerror}",
            "Name another with --out.",
        ) from error
