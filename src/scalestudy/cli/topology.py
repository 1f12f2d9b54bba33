"""`scalestudy check --topology`: what this node is made of, and what its links carry."""

from pathlib import Path

FORMATS = ("table", "json", "markdown", "html", "latex")


def print_topology(*, measure: bool, form: str | None, file: Path | None) -> None:
    """Print or write this node's GPUs or cores, the links between them, and their measured bandwidth.

    Args:
        measure: Whether to measure bandwidth between the units, and in an all-reduce.
        form: Of `FORMATS`; by the ending of `file`, else a table.
        file: File to write instead of printing.
    """
    from scalestudy.cli.console import err, out
    from scalestudy.features.check.topology import read_node
    from scalestudy.features.check.topology_bandwidth import Bandwidth
    from scalestudy.features.check.topology_bandwidth import measure as measure_bandwidth
    from scalestudy.features.check.topology_page import topology_document, topology_json
    from scalestudy.report.as_terminal import terminal
    from scalestudy.report.endings import form_by_ending
    from scalestudy.report.write_document import render_document, write_document
    from scalestudy.util.files import write_atomically

    console, chosen = out(), form_by_ending(form, file, FORMATS, "table")
    node, measured = read_node(), Bandwidth()
    if measure:
        with err().status("Measuring") as status:
            measured = measure_bandwidth(node, status.update)
    document = topology_document(node, measured)
    if file is not None and chosen in ("markdown", "html", "latex"):
        write_document(document, chosen, file)
    else:
        if chosen == "json":
            text = topology_json(node, measured)
        elif chosen == "table":
            text = terminal(document, console.width, console.is_terminal and file is None)
        else:
            text = render_document(document, chosen)
        if file is None:
            print(text, end="")
            return
        write_atomically(file, text)
    err().print(f"Wrote {file}", markup=False)
