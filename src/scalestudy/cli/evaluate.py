"""`scalestudy model evaluate`: loss and metrics of a trained model over a data set."""

from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.model_options import Device, Point, Weights


def evaluate(
    model: Annotated[
        Path,
        typer.Argument(help="A run's folder, or a study's or its file (its best run).", metavar="RUN"),
    ],
    data: Annotated[
        str | None, typer.Option(help="Another data set; the run's own when absent.", metavar="SOURCE")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="Samples: all of another set, the validation set of the run's own when absent.",
            metavar="train|validation|test|all",
        ),
    ] = None,
    point: Point = None,
    weights: Weights = "last",
    workers: Annotated[
        int, typer.Option("--workers", "-n", help="Processes that share the samples.", metavar="N")
    ] = 1,
    device: Device = "auto",
    format: Annotated[str, typer.Option(help="table or json.", metavar="FORMAT")] = "table",
) -> None:
    """Measure a trained model over a data set, each sample once.

    The classes must be those of its training, by their names; their order does not matter.
    """
    import json
    from dataclasses import asdict

    from scalestudy.cli.console import out
    from scalestudy.cli.formats import check_format
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.predict.evaluate import evaluate as conduct
    from scalestudy.features.predict.find_model import find_model
    from scalestudy.report.format import number

    check_format(format)
    terminal = Terminal()
    found = find_model(model, point=point, weights=weights)
    for note in found.notes:
        terminal.note(note)
    done = conduct(found, data, split, terminal, workers=workers, device=device)
    if format == "json":
        print(json.dumps(asdict(done), indent=1))
        return
    console = out()
    console.print(f"{done.model} over {done.data}, {done.split}: {done.samples} samples", markup=False)
    width = max(map(len, done.results))
    for name, value in done.results.items():
        console.print(f"  {name:<{width}}  {number(value, 4)}", markup=False)
