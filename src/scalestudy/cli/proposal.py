"""`scalestudy proposal`: the page that a panel asks for."""

from typing import Annotated

import typer

from scalestudy.cli.options import FileOption, FormOption, StudyArgument, open_study


def proposal(
    study: StudyArgument = None,
    panel: Annotated[
        str | None, typer.Option(help="Who asks: a name of --list, or a panel file.", metavar="NAME")
    ] = None,
    form: FormOption = None,
    file: FileOption = None,
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
    from scalestudy.cli.console import err, show_document
    from scalestudy.features.proposal.page import propose
    from scalestudy.features.proposal.subject import RequestOptions
    from scalestudy.report.write_document import FORMS, form_by_ending
    from scalestudy.study.targets import refuse_target
    from scalestudy.util.errors import UserError

    if list_panels:
        _print_panels()
        return
    if panel is None:
        raise UserError("--panel NAME", "none", "--list prints the panels.")
    refuse_target(file, [study])
    form = form_by_ending(form, file, FORMS, "markdown")
    options = RequestOptions(runs, seeds, strategy, workers, epochs, charge, unit, reserve)
    page = propose(open_study(study), panel, options)
    if page.gaps:
        note = f"{len(page.gaps)} of what {panel} asks for is missing: the page's last part says what to run."
        err().print(note, markup=False)
    show_document(page.document, form, file, {})


def _print_panels() -> None:
    from scalestudy.cli.console import out
    from scalestudy.features.proposal.panel import find_panel, shipped_panels

    for name in shipped_panels():
        panel = find_panel(name)
        read = max(source.read for source in panel.sources)
        out().print(f"{name:<12}  {panel.panel}: {panel.title} ({panel.unit}; read {read})", markup=False)
