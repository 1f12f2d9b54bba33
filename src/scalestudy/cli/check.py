"""`scalestudy check`: whether a study can run here, before it waits in a queue."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from scalestudy.cli.console import err, out
from scalestudy.cli.options import AnswerOption, ForceOption
from scalestudy.config.targets import refuse_target

if TYPE_CHECKING:
    from rich.table import Table

    from scalestudy.features.check.report import AllReduce, Report

STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red"}


def check(
    what: Annotated[
        str | None,
        typer.Argument(
            help="Study file, site profile (name or path), or folder of an earlier check; with --environment "
            "the folder of an environment.",
            metavar="[STUDY_OR_SITE]",
            show_default="this machine",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            "-n",
            min=1,
            help="Number of processes.",
            metavar="N",
            show_default="the study's largest",
        ),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="Nodes of the job of --submit.", metavar="N")
    ] = None,
    submit: Annotated[
        bool, typer.Option("--submit", help="Also check the nodes, by a short job, and wait for it.")
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(help="Engine whose strategies to check.", show_default="the study's first"),
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option(help="Leave out a topic. Repeatable.", metavar="TOPIC")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder for the check's files.", metavar="DIR")
    ] = None,
    environment: Annotated[
        bool, typer.Option("--environment", help="Show the versions in an environment instead.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Read and record them again (with --environment).")
    ] = False,
    strategies: Annotated[
        bool,
        typer.Option("--strategies", help="List all strategies, and whether they can be used here."),
    ] = False,
    form: AnswerOption = "table",
    force: ForceOption = False,
) -> None:
    """Check software, machine, network and collectives. Each line says pass, warn or fail, and what to do.

    The exit code is 0 if no line says fail, and 1 otherwise.
    """
    refuse_target(folder, force=force)
    if strategies:
        return _print_strategies(form)
    if environment:
        from scalestudy.cli.env import print_environment

        return print_environment(None if what is None else Path(what), record=record, form=form)
    from scalestudy.features.check.check import CheckOptions
    from scalestudy.features.check.check import check as run_check

    console, shown = err(), ""
    options = CheckOptions(workers, nodes, submit, tuple(skip or ()), folder, engine)
    with console.status("Checking") as status:

        def on_progress(text: str) -> None:
            from rich.markup import escape

            nonlocal shown
            status.update(escape(text))
            if not console.is_terminal and text != shown:
                console.print(text, markup=False)
            shown = text

        report = run_check(
            what, options, note=lambda text: console.print(text, markup=False), on_progress=on_progress
        )
    _print_report(report, form)
    raise typer.Exit(1 if report.failed else 0)


def _print_report(report: "Report", form: Literal["table", "json"]) -> None:
    if form == "json":
        sys.stdout.write(report.model_dump_json(indent=1) + "\n")
        return

    console = out()
    console.print(_lines(report))
    if report.bandwidth:
        console.print(_bandwidths(report.bandwidth))
    console.print(report.verdict)


def _lines(report: "Report") -> "Table":
    from rich.table import Table
    from rich.text import Text

    from scalestudy.features.check.report import merged

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("", "What", "Where", "Seen, and what to do"):
        table.add_column(name, overflow="fold", no_wrap=name in ("", "What"))
    for line in merged(report.lines):
        seen = Text(line.seen)
        if line.action:
            seen.append(f"\n→ {line.action}", style=STYLES[line.status])
        table.add_row(Text(line.status, style=STYLES[line.status]), line.topic, Text(line.where), seen)
    return table


def _bandwidths(rows: "Sequence[AllReduce]") -> "Table":
    """Bus bandwidth by size and collective."""
    from rich.table import Table

    from scalestudy.plugins.engines import collective
    from scalestudy.util import units

    names = list(dict.fromkeys(row.collective for row in rows))
    cells = {(row.bytes, row.collective): f"{row.bus_bandwidth / 1e9:.3g}" for row in rows}
    title = f"All-reduce over {rows[0].ranks} ranks: bus bandwidth (GB/s)"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("Bytes", *(collective(name).label for name in names)):
        table.add_column(heading, justify="right")
    for size in sorted({row.bytes for row in rows}):
        table.add_row(units.size(size), *(cells.get((size, name), "") for name in names))
    return table


def _print_strategies(form: Literal["table", "json"]) -> None:
    from scalestudy.features.check.software import strategy_records

    records = strategy_records()
    if form == "json":
        sys.stdout.write(json.dumps(records, indent=1) + "\n")
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("Strategy", "Engine", "Steps", "Nodes", "Gradients by", "Here"):
        table.add_column(name, overflow="fold", no_wrap=name in ("Strategy", "Engine"))
    for row in records:
        steps = ("synchronous" if row["synchronous"] else "asynchronous") + ", untimed" * (not row["timed"])
        here = Text(row["missing"] or "usable", style=STYLES["warn"] if row["missing"] else "")
        nodes = "many" if row["nodes"] else "one"
        table.add_row(row["strategy"], row["engine"], steps, nodes, row["summed_by"] or "–", here)
    console = out()
    console.print(table)
    for action in dict.fromkeys(row["action"] for row in records if row["missing"]):
        names = ", ".join(row["strategy"] for row in records if row["action"] == action)
        console.print(Text(f"→ {names}: {action}", style=STYLES["warn"]))
