"""`scalestudy diagnose`: why a point's efficiency is below 1, and what to change."""

from typing import Annotated

import typer

from scalestudy.cli.options import PointOption, StudyArgument, open_study

FORMATS = ("table", "json", "markdown", "html")


def diagnose(
    study: StudyArgument = None,
    point: PointOption = None,
    rounds: Annotated[
        int, typer.Option(help="How often everything is measured in turn.", min=1, metavar="N")
    ] = 3,
    seconds: Annotated[
        float, typer.Option(help="Seconds of steps of each kind in a round.", min=0.1, max=600, metavar="S")
    ] = 2.0,
    format: Annotated[str, typer.Option(help="table, json, markdown or html.", metavar="FORMAT")] = "table",
) -> None:
    """Split a point's lost efficiency into input, exchange, imbalance, contention and fixed cost.

    Short ablations of the point are run here, each with something left out, and compared; then it says what
    to change, in order of gain. The report shows the last diagnosis from then on. Without --point it is the
    next larger point than advised, else the largest measured.
    """
    from scalestudy.cli.console import out
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.diagnose.run import diagnose as run_diagnosis
    from scalestudy.features.diagnose.run import plan
    from scalestudy.features.diagnose.section import rendered, stored_diagnosis
    from scalestudy.util.errors import UserError

    if format not in FORMATS:
        raise UserError(f"a format out of {', '.join(FORMATS)}", repr(format), "Choose one with --format.")
    terminal, folder = Terminal(), open_study(study)
    planned = plan(folder, point)
    name, why = planned.point.name, f", {planned.why}" if planned.why else ""
    terminal.note(f"Diagnosing {name}{why}: {planned.duration(rounds, seconds)}.")
    if planned.point.oversubscribed:
        terminal.note(f"Oversubscribed: {planned.point.oversubscribed}; what it loses is mostly that.")
    diagnosis = run_diagnosis(planned, terminal, rounds=rounds, seconds=seconds)
    stored = stored_diagnosis(diagnosis, folder, planned.findings.rows)
    print(rendered(stored, format, width=out().width), end="")
