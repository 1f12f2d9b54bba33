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
    runs: Annotated[int, typer.Option(help="Different trainings to ask for.", metavar="N")] = 1,
    seeds: Annotated[
        int | None, typer.Option(help="Repeats of each; those of the study when absent.", metavar="K")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option(help="Strategy to ask for; the advised one when absent.", metavar="NAME")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Workers of each; the advised number when absent.", metavar="N")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs of each; those of the study when absent.", metavar="E")
    ] = None,
    charge: Annotated[
        float | None, typer.Option(help="Units an hour costs; the panel's when absent.", metavar="X")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help='Name of the unit: "GPU-h"; the panel\'s when absent.', metavar="UNIT")
    ] = None,
    reserve: Annotated[
        float, typer.Option(help="Share to add for what cannot be foreseen: 0.1 is a tenth.", metavar="SHARE")
    ] = 0.0,
    per_node: Annotated[
        int | None,
        typer.Option(help="Workers on a node, where runs did not record their nodes.", metavar="N"),
    ] = None,
) -> None:
    """Write the page that a panel asks for: text, table, figure and the request, computed.

    What the study does not support is not on the page; its last part says what to run.
    """
    from scalestudy.cli.console import err, out
    from scalestudy.features.proposal.make import make_statement
    from scalestudy.features.proposal.subject import Ask
    from scalestudy.features.proposal.words import counted
    from scalestudy.report.endings import form_by_ending
    from scalestudy.report.write_document import FORMS, render_document, write_document
    from scalestudy.util.errors import UserError

    if list_panels:
        _print_panels()
        return
    if panel is None:
        raise UserError("--panel NAME", "none", "--list prints the panels.")
    form = form_by_ending(form, file, FORMS, "markdown")
    ask = Ask(runs, seeds, strategy, workers, epochs, charge, unit, reserve, per_node)
    made = make_statement(open_study(study), panel, ask)
    if made.gaps:
        told = f"{len(made.gaps)} of what {panel} asks for is missing: the page's last part says what to run."
        err().print(told, markup=False)
    if file is None:
        print(render_document(made.document, form), end="")
        return
    try:
        written = write_document(made.document, form, file)
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
    from scalestudy.features.proposal.find import all_panels, own_panels
    from scalestudy.util.errors import UserError

    console, own = out(), own_panels()
    for name, panel in all_panels():
        if isinstance(panel, UserError):
            told = f"cannot be read: {panel.received}"
        else:
            told = f"{panel.panel}: {panel.title} ({panel.unit}; read {max(s.read for s in panel.sources)})"
        console.print(f"{name:<12}  {told}" + (f"  [{own[name]}]" if name in own else ""), markup=False)
