"""`scalestudy proposal`: the page that a panel asks for."""

from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.study_argument import StudyArgument, open_study

EPILOG = """\b
Examples:
  The panels there are:
    scalestudy proposal --list
  The page for one of them, of the newest study here:
    scalestudy proposal --panel csc --out proposal.md
"""


def proposal(
    study: StudyArgument = None,
    panel: Annotated[
        str | None,
        typer.Option(help="Who asks: a name of --list, or a panel file.", metavar="NAME"),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="markdown, latex or html; as FILE ends when absent, else markdown.",
            metavar="FORMAT",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="File to write instead of printing; figures go into a folder beside it.",
            metavar="FILE",
        ),
    ] = None,
    list_panels: Annotated[bool, typer.Option("--list", help="Print the panels there are.")] = False,
    runs: Annotated[int, typer.Option(min=1, help="Different trainings to ask for.", metavar="N")] = 1,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Repeats of each; those of the study when absent.", metavar="K")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="Strategy to ask for; the advised one when absent.", metavar="NAME")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Workers of each; the advised number when absent.", metavar="N")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs of each; those of the study when absent.", metavar="E")
    ] = None,
    charge: Annotated[
        float | None,
        typer.Option(min=1e-9, help="Units an hour costs; the panel's when absent.", metavar="X"),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help='Name of the unit: "GPU-h"; the panel\'s when absent.', metavar="UNIT")
    ] = None,
    reserve: Annotated[
        float,
        typer.Option(
            min=0.0, help="Share to add for what cannot be foreseen: 0.1 is a tenth.", metavar="SHARE"
        ),
    ] = 0.0,
) -> None:
    """Write the page that a panel asks for: text, table, figure and the request, computed.

    What the study does not support is not on the page; its last part says what to run.
    """
    from scalestudy.cli.console import err, out
    from scalestudy.features.proposal.page import propose
    from scalestudy.features.proposal.subject import RequestOptions, counted
    from scalestudy.report.write_document import FORMS, form_by_ending, render_document, write_document
    from scalestudy.util.errors import UserError

    if list_panels:
        _print_panels()
        return
    if panel is None:
        raise UserError("--panel NAME", "none", "--list prints the panels.")
    form = form_by_ending(form, file, FORMS, "markdown")
    options = RequestOptions(runs, seeds, strategy, workers, epochs, charge, unit, reserve)
    page = propose(open_study(study), panel, options)
    if page.gaps:
        note = f"{len(page.gaps)} of what {panel} asks for is missing: the page's last part says what to run."
        err().print(note, markup=False)
    if file is None:
        print(render_document(page.document, form), end="")
        return
    try:
        written = write_document(page.document, form, file)
    except OSError as error:
        raise UserError(
            "a file that can be written",
            f"{error.filename or file}: {error.strerror}",
            "Name another with --out.",
        ) from error
    beside = f" and {counted(len(written) - 1, 'figure')} in {written[1].parent}" if len(written) > 1 else ""
    out().print(f"Wrote {file}{beside}", markup=False)


def _print_panels() -> None:
    from scalestudy.cli.console import out
    from scalestudy.features.proposal.panel import find_panel, shipped_panels

    for name in shipped_panels():
        panel = find_panel(name)
        read = max(source.read for source in panel.sources)
        out().print(f"{name:<12}  {panel.panel}: {panel.title} ({panel.unit}; read {read})", markup=False)
