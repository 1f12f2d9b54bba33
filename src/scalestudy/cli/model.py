"""`scalestudy model`: what a trained model is used for."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scalestudy.cli.help import CommandGroup
from scalestudy.cli.options import (
    AnswerOption,
    DeviceOption,
    ForceOption,
    PointOption,
    WorkersOption,
    newest_study,
)

if TYPE_CHECKING:
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.predict.find_model import FoundModel
    from scalestudy.features.predict.predict import Predicted, Wanted

SHOWN = 20
"""Skipped images that are named."""

app = typer.Typer(
    cls=CommandGroup,
    help="Use a trained model: predict, evaluate, look at samples, export.",
    no_args_is_help=True,
)
Model = Annotated[
    Path | None,
    typer.Argument(
        help="A run's folder, or a study's or its file (its best run); the newest study here when absent.",
        metavar="STUDY",
        show_default=False,
    ),
]
Weights = Annotated[str, typer.Option(help="Of the last or the best epoch.", metavar="last|best")]


@app.command("predict")
def predict(
    model: Annotated[
        Path,
        typer.Argument(
            help="A run's folder, a study's or its file (its best run), or an exported model.",
            metavar="STUDY",
        ),
    ],
    images: Annotated[
        list[str], typer.Argument(help="Images, folders of images, or patterns.", metavar="IMAGES...")
    ],
    out_folder: Annotated[Path, typer.Option("--out", help="Folder to write to.", metavar="DIR")],
    point: PointOption = None,
    weights: Weights = "last",
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Also write masks laid over their images.")
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities", help="Also write the probability of each class at each pixel (.npy)."
        ),
    ] = False,
    workers: WorkersOption = 1,
    device: DeviceOption = "auto",
    force: ForceOption = False,
) -> None:
    """Predict masks or classes of images with a trained model.

    Written are DIR/masks/NAME.png (class indices with a palette, of each image's own size) or the class of
    each image, and the table DIR/predictions.csv. Images are prepared as for training; what is done to them
    is told. The results are the same for any number of workers.

    Images that cannot be read are named and left out: the exit code is then 1.
    """
    from scalestudy.features.predict import predict as prediction
    from scalestudy.study.targets import refuse_target

    refuse_target(out_folder, [model, *images])
    trained, terminal = _found(model, point, weights)
    wanted = prediction.Wanted(tuple(images), out_folder, overlay, probabilities, workers, device, force)
    done = prediction.predict(trained, wanted, terminal)
    _print_predicted(done, wanted, trained.label)
    raise typer.Exit(1 if done.skipped else 0)


@app.command("evaluate")
def evaluate(
    model: Model = None,
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
    point: PointOption = None,
    weights: Weights = "last",
    device: DeviceOption = "auto",
    form: AnswerOption = "table",
) -> None:
    """Measure a trained model over a data set, each sample once.

    The classes must be those of its training, by their names; their order does not matter.
    """
    from scalestudy.cli.console import out
    from scalestudy.features.predict import evaluate as evaluation
    from scalestudy.report.format import number

    trained, terminal = _found(model, point, weights)
    done = evaluation.evaluate(trained, data, split, terminal, device=device)
    if form == "json":
        print(json.dumps(asdict(done), indent=1))
        return
    console = out()
    console.print(f"{done.model} over {done.data}, {done.split}: {done.samples} samples", markup=False)
    width = max(map(len, done.results))
    for name, value in done.results.items():
        console.print(f"  {name:<{width}}  {number(value, 4)}", markup=False)


@app.command("samples")
def samples(
    model: Model = None,
    out_file: Annotated[Path, typer.Option("--out", help="File of the page.", metavar="FILE")] = Path(
        "samples.html"
    ),
    number: Annotated[int, typer.Option(help="Samples of each sort.", metavar="N")] = 3,
    point: PointOption = None,
    weights: Weights = "last",
    device: DeviceOption = "auto",
) -> None:
    """Show where a model is right and where it is wrong, with truth and prediction.

    All validation samples are judged by their own loss and quality; the page holds its pictures and needs
    no network.
    """
    from scalestudy.cli.console import out
    from scalestudy.features.predict.evaluate import write_gallery
    from scalestudy.study.targets import refuse_target

    refuse_target(out_file, [model])
    trained, terminal = _found(model, point, weights)
    judged = write_gallery(trained, out_file, terminal, samples=number, device=device)
    out().print(f"{judged} validation samples judged by {trained.label}: {out_file}", markup=False)


@app.command("export")
def export(
    out_path: Annotated[
        Path,
        typer.Option("--out", help="File (.keras, .onnx, .pt2), or folder of a SavedModel.", metavar="PATH"),
    ],
    model: Model = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="What is written; what --out ends in when absent.",
            metavar="keras|savedmodel|onnx|pt2|torchscript",
        ),
    ] = None,
    raw_inputs: Annotated[
        bool, typer.Option("--raw-inputs", help="Leave the scaling out: inputs are then numbers from 0 to 1.")
    ] = False,
    point: PointOption = None,
    weights: Weights = "last",
    force: ForceOption = False,
) -> None:
    """Write a trained model so that it loads without Scalestudy.

    It takes images as they are stored (8 or 16 bits) and scales them itself. The names of its classes, and
    how images are prepared, are in it and in a JSON beside it.
    """
    from scalestudy.cli.console import out
    from scalestudy.features.predict.export import export_model
    from scalestudy.study.targets import refuse_target

    refuse_target(out_path, [model])
    trained, terminal = _found(model, point, weights)
    beside = export_model(trained, out_path, format, terminal, raw_inputs=raw_inputs, force=force)
    height, width, channels = trained.record.input_shape
    last = trained.path.suffix == ".keras"  # else a module, which takes channels first
    shape = " x ".join(map(str, (height, width, channels) if last else (channels, height, width)))
    takes = "0..1" if raw_inputs else f"{trained.record.dtype}, scaled inside"
    out().print(f"{trained.label}: {out_path} (inputs {shape}, {takes}); classes in {beside}", markup=False)


def _found(path: Path | None, point: str | None, weights: str) -> "tuple[FoundModel, Terminal]":
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.predict.find_model import find_model

    model, terminal = find_model(path or newest_study(), point=point, weights=weights), Terminal()
    for note in model.notes:
        terminal.note(note)
    return model, terminal


def _print_predicted(done: "Predicted", wanted: "Wanted", label: str) -> None:
    from scalestudy.cli.console import err, out

    console = out()
    for change, count in sorted(done.changes.items(), key=lambda pair: -pair[1]):
        err().print(f"{count} image{'s' * (count != 1)}: {change}.", markup=False)
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
