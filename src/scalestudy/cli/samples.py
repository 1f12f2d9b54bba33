"""`scalestudy model samples`: the best, median and worst validation samples of a run, as a page."""

from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.model_options import Device, Point, Weights


def samples(
    model: Annotated[
        Path,
        typer.Argument(help="A run's folder, or a study's or its file (its best run).", metavar="RUN"),
    ],
    out_file: Annotated[Path, typer.Option("--out", help="File of the page.", metavar="FILE")] = Path(
        "samples.html"
    ),
    number: Annotated[int, typer.Option(help="Samples of each sort.", metavar="N")] = 3,
    point: Point = None,
    weights: Weights = "last",
    device: Device = "auto",
) -> None:
    """Show where a model is right and where it is wrong, with truth and prediction.

    All validation samples are judged by their own loss and quality; the page holds its pictures and needs
    no network.
    """
    from scalestudy.cli.console import out
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.predict.find_model import find_model
    from scalestudy.features.predict.samples import write_gallery

    terminal = Terminal()
    found = find_model(model, point=point, weights=weights)
    for note in found.notes:
        terminal.note(note)
    judged = write_gallery(found, out_file, terminal, samples=number, device=device)
    out().print(f"{judged} validation samples judged by {found.label}: {out_file}", markup=False)
