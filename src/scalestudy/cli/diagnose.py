"""`scalestudy diagnose`: why a point's efficiency is below 1, and what to change."""

from pathlib import Path
from typing import Annotated

import typer

FORMATS = ("table", "json", "markdown", "html")


def diagnose(
    study: Annotated[Path, typer.Argument(help="A study file, or its results folder.", metavar="STUDY")],
    point: Annotated[
        str | None,
        typer.Argument(
            help="Name of a point; when absent the next larger than advised, else the largest measured.",
            metavar="POINT",
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option(help="How often everything is measured in turn.", min=1, metavar="N")
    ] = 3,
    seconds: Annotated[
        float, typer.Option(help="Seconds of steps of each kind in a round.", min=0.1, max=600, metavar="S")
    ] = 2.0,
    out: Annotated[Path | None, typer.Option(help="Results folder of a study file.", metavar="DIR")] = None,
    format: Annotated[str, typer.Option(help="table, json, markdown or html.", metavar="FORMAT")] = "table",
    trace: Annotated[
        bool,
        typer.Option("--trace", help="Write a trace for Perfetto as well, and the engine's own profile."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be run, and stop.")] = False,
) -> None:
    """Split a point's lost efficiency into input, exchange, imbalance, contention and fixed cost.

    Short ablations of the point are run here, each with something left out, and compared; then it says what
    to change, in order of gain. The report shows the last diagnosis from then on.
    """
    import shlex

    from scalestudy.cli.console import err
    from scalestudy.cli.console import out as console
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.diagnose.plan import plan
    from scalestudy.features.diagnose.records import diagnosis_folder
    from scalestudy.features.diagnose.run import diagnose as run_diagnosis
    from scalestudy.features.diagnose.section import rendered, stored_diagnosis
    from scalestudy.study.store import StudyFolder
    from scalestudy.util.errors import UserError

    if format not in FORMATS:
        raise UserError(f"a format out of {', '.join(FORMATS)}", repr(format), "Choose one with --format.")
    terminal = Terminal()
    planned = plan(study, point, terminal, out, dry_run=dry_run)
    if dry_run:
        for line in planned.lines(rounds, seconds):
            console().print(line, markup=False)
        return
    name, why = planned.point.name, f", {planned.why}" if planned.why else ""
    terminal.note(f"Diagnosing {name}{why}: {planned.duration(rounds, seconds)}.")
    if planned.point.oversubscribed:
        terminal.note(f"Oversubscribed: {planned.point.oversubscribed}; what it loses is mostly that.")
    diagnosis = run_diagnosis(planned, terminal, rounds=rounds, seconds=seconds, trace=trace)
    stored = stored_diagnosis(diagnosis, StudyFolder.open(planned.target), planned.findings.rows)
    print(rendered(stored, planned.findings.measures, format, width=console().width), end="")
    if trace:
        folder = diagnosis_folder(planned.target, name)
        err().print(f"Trace for https://ui.perfetto.dev: {folder / 'trace.json'}", markup=False)
        profile = folder / "ablations" / "profile"
        if profile.is_dir():
            err().print(f"Profile: tensorboard --logdir {shlex.quote(str(profile))}", markup=False)
