"""`scalestudy model predict`: what a trained model says of images."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scalestudy.cli.model_options import Device, Point, Weights

if TYPE_CHECKING:
    from scalestudy.features.predict.job import Job
    from scalestudy.features.predict.predict import Predicted, Wanted

SHOWN = 20
"""Skipped images that are named."""


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            help="A run's folder, a study's or its file (its best run), or an exported model.", metavar="RUN"
        ),
    ],
    images: Annotated[
        list[str],
        typer.Argument(
            help="Images, folders of images, patterns, or one source of data.", metavar="IMAGES..."
        ),
    ],
    out_folder: Annotated[Path, typer.Option("--out", help="Folder to write to.", metavar="DIR")],
    point: Point = None,
    weights: Weights = "last",
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Also write masks laid over their images.")
    ] = False,
    probabilities: Annotated[
        str,
        typer.Option(help="Also write the probability of each class at each pixel.", metavar="none|npy|tiff"),
    ] = "none",
    format: Annotated[str, typer.Option(help="Of the table.", metavar="csv|jsonl")] = "csv",
    workers: Annotated[
        int, typer.Option("--workers", "-n", help="Processes that share the images.", metavar="N")
    ] = 1,
    device: Device = "auto",
    force: Annotated[
        bool, typer.Option("--force", help="Write into a folder that holds other things.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and write nothing.")
    ] = False,
) -> None:
    """Predict masks or classes of images with a trained model.

    Written are DIR/masks/NAME.png (class indices with a palette, of each image's own size) or the class of
    each image, and the table DIR/predictions.csv. Images are prepared as for training; what is done to them
    is told. The results are the same for any number of workers.

    Images that cannot be read are named and left out: the exit code is then 1.
    """
    from scalestudy.cli.console import out
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.predict import predict as conduct
    from scalestudy.features.predict.find_model import find_model

    found = find_model(model, point=point, weights=weights)
    wanted = conduct.Wanted(tuple(images), out_folder, overlay, probabilities, format, workers, device, force)
    terminal = Terminal()
    for note in found.notes:
        terminal.note(note)
    if dry_run:
        for line in _planned(conduct.plan(found, wanted, terminal), wanted, found.label):
            out().print(line, markup=False)
        return
    done = conduct.predict(found, wanted, terminal)
    _print(done, wanted, found.label)
    raise typer.Exit(1 if done.skipped else 0)


def _planned(job: "Job", wanted: "Wanted", label: str) -> list[str]:
    from scalestudy.data.sources.files import several

    kinds = ["masks"] * (job.record.kind == "masks") + ["overlays"] * job.overlay
    kinds += ["probabilities"] * (job.probabilities != "none")
    where = "GPUs" if job.device == "gpu" else "CPUs"
    return [
        f"Model: {label}, inputs of {' x '.join(map(str, job.record.input_shape))}",
        f"{len(job.items)} images: {several([each.shown for each in job.items], 3)}",
        f"{job.size} worker{'s' * (job.size != 1)} on {where}",
        f"Would write to {wanted.out}: {', '.join([*kinds, f'predictions.{wanted.format}'])}",
    ]


def _print(done: "Predicted", wanted: "Wanted", label: str) -> None:
    from scalestudy.cli.console import err, out

    console = out()
    for told, count in sorted(done.told.items(), key=lambda each: -each[1]):
        err().print(f"{count} image{'s' * (count != 1)}: {told}.", markup=False)
    for shown, why in done.skipped[:SHOWN]:
        err().print(f"Left out: {why if shown in why else f'{shown}: {why}'}", markup=False, style="red")
    if len(done.skipped) > SHOWN:
        err().print(
            f"... and {len(done.skipped) - SHOWN} more, in {wanted.out}/predictions.json", style="red"
        )
    if done.classes:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(done.classes.items()))
        console.print(f"Classes: {counts}", markup=False)
    left = f", {len(done.skipped)} left out" if done.skipped else ""
    console.print(f"{done.images} images predicted by {label}{left}: {done.table}", markup=False)
