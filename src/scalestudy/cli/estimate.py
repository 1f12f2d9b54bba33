"""`scalestudy estimate`: what larger runs of a study are expected to take."""

from pathlib import Path
from typing import Annotated

import typer


def estimate(
    study: Annotated[Path, typer.Argument(help="Study file, or results folder of a study.", metavar="STUDY")],
    workers: Annotated[
        str, typer.Option("--workers", "-n", help="Numbers to look at.", metavar="N,N,…")
    ] = "1,2,4,8,16,32,64,128,256,512,1024,2048,4096",
    from_check: Annotated[
        list[Path] | None,
        typer.Option(
            help="What check or topology has measured: its --format json, or a check's folder. Repeatable.",
            metavar="FILE",
        ),
    ] = None,
    site: Annotated[
        str | None, typer.Option(help="Site profile that states its network.", metavar="NAME")
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option(help="Of a node's link to the network: 100Gbit.", metavar="B")
    ] = None,
    latency: Annotated[str | None, typer.Option(help="Between two nodes: 2us.", metavar="T")] = None,
    node_bandwidth: Annotated[
        str | None, typer.Option(help="Between devices of a node: 300GB.", metavar="B")
    ] = None,
    node_latency: Annotated[
        str | None, typer.Option(help="Between devices of a node: 5us.", metavar="T")
    ] = None,
    storage_bandwidth: Annotated[
        str | None, typer.Option(help="Of the shared file system: 10GB.", metavar="B")
    ] = None,
    per_node: Annotated[int | None, typer.Option(min=1, help="Workers of a node.", metavar="N")] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="Of all-reduces, instead of the collective's own: ring, tree, ring-or-tree, halving, "
            "hierarchical.",
            metavar="NAME",
        ),
    ] = None,
    target: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Efficiency below which workers do not pay.")
    ] = 0.7,
    charge: Annotated[
        float | None, typer.Option(min=0.0, help="Charged for an hour of a node.", metavar="X")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Time one worker shortly on this machine where no run has.")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="table, json, markdown or html; by the ending of --out, else table.",
            metavar="FORMAT",
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--out", help="File to write instead of printing.", metavar="FILE")
    ] = None,
) -> None:
    """Estimate larger runs of a study from its runs of one worker and the network, before any is started.

    Expected times, speed-up, efficiency and cost up to thousands of workers, each with its range. The
    estimate is stored in the study's folder, if you may write to it; the report draws it beside what is
    measured later.
    """
    from scalestudy.cli.console import err, out
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.estimate.estimate import NetworkOptions
    from scalestudy.features.estimate.estimate import estimate as estimated
    from scalestudy.features.estimate.network import ALGORITHMS
    from scalestudy.features.estimate.page import FORMS, made, rendered
    from scalestudy.features.estimate.prediction import Question
    from scalestudy.report.endings import form_by_ending
    from scalestudy.util.errors import UserError
    from scalestudy.util.files import write_atomically

    if algorithm is not None and algorithm not in ALGORITHMS:
        raise UserError(
            f"an algorithm out of {', '.join(ALGORITHMS)}", repr(algorithm), "Choose one with --algorithm."
        )
    network = NetworkOptions(
        checks=tuple(from_check or ()), site=site, bandwidth=bandwidth, latency=latency,
        node_bandwidth=node_bandwidth, node_latency=node_latency, storage_bandwidth=storage_bandwidth,
        per_node=per_node,
    )  # fmt: skip
    form = form_by_ending(form, file, FORMS, "table")
    question = Question(counts=counts_of(workers), target=target, charge=charge, algorithm=algorithm)
    done = estimated(study, network, question, measure=measure, listener=Terminal())
    console = out()
    text = rendered(done.record, form, width=console.width, colour=console.is_terminal and file is None)
    if file is None:
        print(text, end="")
    else:
        write_atomically(file, text)
        console.print(f"Wrote {file}", markup=False)
    if done.not_stored:
        err().print(
            f"Note: not stored in {done.results}, so no report will show it: {done.not_stored}.", markup=False
        )
    if done.stored is not None:
        err().print(
            f"Note: the estimate in {done.results} stays the one made {made(done.stored)}; --out FILE with "
            "--format json keeps this one.",
            markup=False,
        )


def counts_of(text: str) -> tuple[int, ...]:
    """Numbers of workers from `1,2,4`.

    Raises:
        UserError: It is no list of them.
    """
    from scalestudy.util.errors import UserError

    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 < each <= 1_000_000 for each in found):
        raise UserError(
            "numbers of workers from 1 to 1,000,000 with commas between, as --workers 1,2,4,4096",
            repr(text),
            "Correct --workers.",
        )
    return found
