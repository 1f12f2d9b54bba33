"""`scalestudy model export`: a trained model for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from scalestudy.cli.model_options import Point, Weights


def export(
    model: Annotated[
        Path,
        typer.Argument(help="A run's folder, or a study's or its file (its best run).", metavar="RUN"),
    ],
    out_path: Annotated[
        Path, typer.Option("--out", help="File (.keras, .onnx), or folder of a SavedModel.", metavar="PATH")
    ],
    format: Annotated[str, typer.Option(help="What is written.", metavar="keras|savedmodel|onnx")] = "keras",
    raw_inputs: Annotated[
        bool,
        typer.Option("--raw-inputs", help="Leave the scaling out: inputs are then numbers from 0 to 1."),
    ] = False,
    point: Point = None,
    weights: Weights = "last",
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Write a trained model so that it loads without Scalestudy.

    It takes images as they are stored (8 or 16 bits) and scales them itself. The names of its classes, and
    how images are prepared, are in it and in a JSON beside it.
    """
    from scalestudy.cli.console import out
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.predict.export import export_model
    from scalestudy.features.predict.find_model import find_model

    terminal = Terminal()
    found = find_model(model, point=point, weights=weights)
    for note in found.notes:
        terminal.note(note)
    beside = export_model(found, out_path, format, terminal, raw_inputs=raw_inputs, force=force)
    shape = " x ".join(map(str, found.record.input_shape))
    takes = "0..1" if raw_inputs else f"{found.record.dtype}, scaled inside"
    out().print(f"{found.label}: {out_path} (inputs {shape}, {takes}); classes in {beside}", markup=False)
