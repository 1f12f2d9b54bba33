"""`scalestudy diagnose`: why a point's efficiency is below 1, and what to change."""

from typing import Annotated

import typer

from scalestudy.cli.console import out
from scalestudy.cli.options import AnswerOption, PointOption, StudyArgument, open_study


def diagnose(
    study: StudyArgument = None,
    point: PointOption = None,
    rounds: Annotated[
        int, typer.Option(help="Rounds; each measures every variant once.", min=1, metavar="N")
    ] = 3,
    seconds: Annotated[
        float,
        typer.Option(help="Seconds of each variant in a round.", min=0.1, max=600, metavar="S"),
    ] = 2.0,
    form: AnswerOption = "table",
) -> None:
    """Split a point's lost efficiency into input, exchange, imbalance, contention and fixed cost.

    Runs short ablations of the point on this machine, each without one part of a step, compares them, and
    lists what to change, the largest gain first. Later reports include the last diagnosis. Without --point it
    takes the next larger point after the advised one, else the largest measured.
    """
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.diagnose.run import diagnose as run_diagnosis
    from scalestudy.features.diagnose.run import plan
    from scalestudy.features.diagnose.section import rendered, stored_diagnosis

    terminal, folder = Terminal(), open_study(study)
    planned = plan(folder, point)
    name, why = planned.point.name, f", {planned.why}" if planned.why else ""
    terminal.note(f"Diagnosing {name}{why}.")
    if planned.point.oversubscribed:
        terminal.note(f"Oversubscribed: {planned.point.oversubscribed}; most of the loss comes from that.")
    diagnosis = run_diagnosis(planned, terminal, rounds=rounds, seconds=seconds)
    stored = stored_diagnosis(diagnosis, folder, planned.findings.rows)
    print(rendered(stored, form, width=out().width), end="")
