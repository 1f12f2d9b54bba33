"""The report of a check as a table, or as JSON."""

import sys
from typing import TYPE_CHECKING, Literal

from scalestudy.cli.console import out
from scalestudy.util import units

if TYPE_CHECKING:
    from rich.table import Table

    from scalestudy.features.check.line import Report

STYLES = {"pass": "green", "warn": "yellow", "fail": "bold red"}


def print_report(report: "Report", form: Literal["table", "json"]) -> None:
    """Print a report to standard output."""
    if form == "json":
        sys.stdout.write(report.model_dump_json(indent=1) + "\n")
        return
    console = out()
    console.print(_lines(report))
    if report.bandwidth:
        console.print()
        console.print(_bandwidth(report))
    count = {status: sum(line.status == status for line in report.lines) for status in STYLES}
    console.print(f"{count['pass']} passed, {count['warn']} warnings, {count['fail']} failed")


def _lines(report: "Report") -> "Table":
    from rich.table import Table
    from rich.text import Text

    from scalestudy.features.check.line import merged

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("", "What", "Where", "Seen, and what to do"):
        table.add_column(name, overflow="fold", no_wrap=name in ("", "What"))
    for line in merged(report.lines):
        seen = Text(line.seen)
        if line.action:
            seen.append(f"\n→ {line.action}", style=STYLES[line.status])
        table.add_row(Text(line.status, style=STYLES[line.status]), line.topic, Text(line.where), seen)
    return table


def _bandwidth(report: "Report") -> "Table":
    from rich.table import Table

    names = list(dict.fromkeys(row.collective for row in report.bandwidth))
    ranks = report.bandwidth[0].ranks
    table = Table(
        title=f"All-reduce over {ranks} ranks: bus bandwidth in GB/s (time in ms)",
        title_justify="left", title_style="", box=None, padding=(0, 2, 0, 0),
    )  # fmt: skip
    for name in ("size", *names):
        table.add_column(name, justify="right")
    found = {(row.bytes, row.collective): row for row in report.bandwidth}
    for size in sorted({row.bytes for row in report.bandwidth}):
        rows = [found.get((size, name)) for name in names]
        cells = [f"{row.bus_bandwidth / 1e9:.2g} ({row.seconds * 1e3:.3g})" if row else "" for row in rows]
        table.add_row(units.size(size), *cells)
    return table
