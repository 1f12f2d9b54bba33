"""`scalestudy proposal`: the page that a review panel asks for."""

from typing import Annotated

import typer

from scalestudy.cli.console import err, out, show_document
from scalestudy.cli.options import FileOption, ForceOption, StudyArgument, format_option, open_study
from scalestudy.config.targets import refuse_target
from scalestudy.util.errors import UserError


def proposal(
    study: StudyArgument = None,
    panel: Annotated[
        str | None, typer.Option(help="Review panel: a name from --list, or a panel file.", metavar="NAME")
    ] = None,
    form: Annotated[str | None, format_option("markdown", "html")] = None,
    file: FileOption = None,
    list_panels: Annotated[bool, typer.Option("--list", help="List the review panels.")] = False,
    runs: Annotated[int, typer.Option(min=1, help="Different trainings to request.", metavar="N")] = 1,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Repeats of each.", metavar="K", show_default="those of the study"),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(help="Strategy to request.", metavar="NAME", show_default="the advised one"),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Workers of each.", metavar="N", show_default="the advised number"),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Epochs of each.", metavar="E", show_default="those of the study"),
    ] = None,
    charge: Annotated[
        float | None,
        typer.Option(min=1e-9, help="Units charged per hour.", metavar="X", show_default="the panel's"),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(help='Name of the unit, such as "GPU-h".', metavar="UNIT", show_default="the panel's"),
    ] = None,
    reserve: Annotated[
        float,
        typer.Option(min=0.0, help="Share to add as a reserve: 0.1 is a tenth.", metavar="SHARE"),
    ] = 0.0,
    force: ForceOption = False,
) -> None:
    """Write the page that a review panel asks for: text, table, figure and the computed request.

    The page holds only what the study supports; its last part lists what else to run.
    """
    from scalestudy.features.proposal.page import propose
    from scalestudy.features.proposal.subject import RequestOptions
    from scalestudy.report.write_document import FORMS, form_by_ending

    if list_panels:
        _print_panels()
        return
    if panel is None:
        raise UserError("--panel NAME", "none", "Choose one: scalestudy proposal --list")
    refuse_target(file, [study], force=force)
    form = form_by_ending(form, file, FORMS, "markdown")
    options = RequestOptions(runs, seeds, strategy, workers, epochs, charge, unit, reserve)
    page = propose(open_study(study), panel, options)
    if page.gaps:
        items = "1 item" if len(page.gaps) == 1 else f"{len(page.gaps)} items"
        note = f"Not on the page: {items} that {panel} asks for. See its last part."
        err().print(note, markup=False)
    show_document(page.document, form, file, {})


def _print_panels() -> None:
    from scalestudy.features.proposal.panel import find_panel, shipped_panels

    for name in shipped_panels():
        panel = find_panel(name)
        read = max(source.read for source in panel.sources)
        out().print(f"{name:<12}  {panel.panel}: {panel.title} ({panel.unit}; read {read})", markup=False)
