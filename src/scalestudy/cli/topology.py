"""`scalestudy topology`: what this node is made of, and what its links carry."""

from pathlib import Path
from typing import Annotated

import typer


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
    import sys

    from scalestudy.cli.console import err
    from scalestudy.cli.console import out as console
    from scalestudy.cli.formats import check_format
    from scalestudy.cli.topology_progress import TopologyProgress
    from scalestudy.features.topology.node import node_topology
    from scalestudy.features.topology.page import check_ending, write_topology
    from scalestudy.features.topology.text import topology_json, topology_text

    check_format(format)
    if out is not None:
        check_ending(out)
    node = node_topology(measure=measure, listener=TopologyProgress())
    found, pairs, sums, host = node.topology, node.pairs, node.sums, node.host
    if format == "json":
        print(topology_json(found, pairs, sums, node.notes, host=host))
    else:
        width, colour = console().width, sys.stdout.isatty()
        print(topology_text(found, pairs, sums, host=host, width=width, colour=colour), end="")
    for note in node.notes:
        err().print(f"Note: {note}", markup=False)
    if out is not None:
        write_topology(out, found, pairs, sums, host)
        err().print(f"Drawn: {out}", markup=False)
