"""`scalestudy topology`: what this node is made of, and what its links carry."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from scalestudy.measure.pairs import Pairs
    from scalestudy.measure.topology import AllReduce, Topology


def topology(
    measure: Annotated[
        bool, typer.Option(help="Measure bandwidth between the units, and in an all-reduce.")
    ] = True,
    format: Annotated[str, typer.Option(help="table or json.", metavar="FORMAT")] = "table",
    out: Annotated[
        Path | None, typer.Option(help="Draw it as well: FILE.svg, .png or .html.", metavar="FILE")
    ] = None,
) -> None:
    """Show this node's GPUs or CPUs, the links between them, and the bandwidth measured beside them."""
    import socket
    import sys

    from scalestudy.cli.console import err
    from scalestudy.cli.console import out as console
    from scalestudy.cli.formats import check_format
    from scalestudy.launch.resources import cores
    from scalestudy.measure.cpu_topology import cpu_topology
    from scalestudy.measure.gpu_topology import gpu_topology
    from scalestudy.report.topology_page import check_ending, write_topology
    from scalestudy.report.topology_text import topology_json, topology_text

    check_format(format)
    if out is not None:
        check_ending(out)
    found = gpu_topology() or cpu_topology(cores())
    host = socket.gethostname()
    pairs, sums, notes = _measured(found) if measure else (None, [], [])
    if format == "json":
        print(topology_json(found, pairs, sums, notes, host=host))
    else:
        width, colour = console().width, sys.stdout.isatty()
        print(topology_text(found, pairs, sums, host=host, width=width, colour=colour), end="")
    for note in notes:
        err().print(f"Note: {note}", markup=False)
    if out is not None:
        write_topology(out, found, pairs, sums, host)
        err().print(f"Drawn: {out}", markup=False)


def _measured(found: "Topology") -> "tuple[Pairs | None, list[AllReduce], list[str]]":
    from importlib.util import find_spec

    from rich.progress import Progress, SpinnerColumn, TextColumn

    from scalestudy.check.node_all_reduce import all_reduce_here
    from scalestudy.cli.console import err
    from scalestudy.measure.pairs import measure_pairs

    if len(found.units) < 2:
        return None, [], ["one unit alone has no links to measure"]
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=err(), transient=True) as progress:
        bar = progress.add_task("Measuring between two")
        pairs = measure_pairs(
            found, on_progress=lambda done, total: progress.update(bar, completed=done, total=total)
        )
        if find_spec("tensorflow") is None:
            return pairs, [], ["no TensorFlow here: no all-reduce was measured"]
        progress.update(bar, description="Measuring all-reduces (starts TensorFlow in each process)")
        sums, notes = all_reduce_here(found)
    return pairs, sums, notes
