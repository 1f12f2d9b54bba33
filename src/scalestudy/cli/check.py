"""`scalestudy check`: whether a study can run here, before it waits in a queue."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from scalestudy.cli.options import format_option
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table

    from scalestudy.features.check.report import Report

STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red"}
TOPOLOGY_FORMATS = ("table", "json", "markdown", "html", "latex")


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
        Path | None,
        typer.Option("--out", help="Folder for the check's files; with --topology the file.", metavar="PATH"),
    ] = None,
    topology: Annotated[
        bool,
        typer.Option("--topology", help="Show this node's GPUs or cores and their links instead."),
    ] = False,
    measure: Annotated[bool, typer.Option(help="Measure the bandwidth (with --topology).")] = True,
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
    form: Annotated[str | None, format_option("table", "json", more="with --topology markdown, html")] = None,
) -> None:
    """Check software, machine, network and collectives. Each line says pass, warn or fail, and what to do.

    The exit code is 0 if no line says fail, and 1 otherwise.
    """
    from scalestudy.study.targets import refuse_target

    refuse_target(folder)
    if topology:
        return _print_topology(measure=measure, form=form, file=folder)
    if form not in (None, "table", "json"):
        raise UserError("the format table or json", repr(form), "Choose one of these with --format.")
    kind: Literal["table", "json"] = "json" if form == "json" else "table"
    if strategies:
        return _print_strategies(kind)
    if environment:
        from scalestudy.cli.env import print_environment

        return print_environment(None if what is None else Path(what), record=record, form=kind)
    from scalestudy.cli.console import err
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
    _print_report(report, kind)
    raise typer.Exit(1 if report.failed else 0)


def _print_report(report: "Report", form: Literal["table", "json"]) -> None:
    from scalestudy.cli.console import out

    if form == "json":
        sys.stdout.write(report.model_dump_json(indent=1) + "\n")
        return
    from scalestudy.features.check.topology import bandwidth_section
    from scalestudy.report.as_terminal import terminal
    from scalestudy.report.document import Document

    console = out()
    console.print(_lines(report))
    if report.bandwidth:
        section = bandwidth_section(report.bandwidth)
        print("\n" + terminal(Document(section.title, section.blocks), console.width, console.is_terminal))
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


def _print_strategies(form: Literal["table", "json"]) -> None:
    from scalestudy.features.check.software import strategy_lines

    lines = strategy_lines()
    if form == "json":
        sys.stdout.write(json.dumps([line.model_dump() for line in lines], indent=1) + "\n")
        return
    from rich.table import Table
    from rich.text import Text

    from scalestudy.cli.console import out

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("Strategy", "Engine", "Steps", "Nodes", "Gradients by", "Here"):
        table.add_column(name, overflow="fold", no_wrap=name in ("Strategy", "Engine"))
    for line in lines:
        steps = ("synchronous" if line.synchronous else "asynchronous") + ", untimed" * (not line.timed)
        here = Text(line.missing or "usable", style=STYLES["warn"] if line.missing else "")
        nodes = "many" if line.nodes else "one"
        table.add_row(line.strategy, line.engine, steps, nodes, line.summed_by or "–", here)
    console = out()
    console.print(table)
    for action in dict.fromkeys(line.action for line in lines if line.missing):
        names = ", ".join(line.strategy for line in lines if line.action == action)
        console.print(Text(f"→ {names}: {action}", style=STYLES["warn"]))


def _print_topology(*, measure: bool, form: str | None, file: Path | None) -> None:
    """This node's GPUs or cores, the links between them, and their measured bandwidth, or write them."""
    from functools import partial

    from scalestudy.cli.console import err, show_document
    from scalestudy.features.check import topology
    from scalestudy.report.write_document import form_by_ending

    chosen = form_by_ending(form, file, TOPOLOGY_FORMATS, "table")
    node, measured = topology.read_node(), topology.NodeBandwidth()
    if measure:
        with err().status("Measuring") as status:
            measured = topology.measure(node, status.update)
    programs = {"json": partial(topology.topology_json, node, measured)}
    show_document(topology.topology_document(node, measured), chosen, file, programs)
