"""Commands for trained models and data sets: `model` and `data`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scalestudy.cli.help import CommandGroup
from scalestudy.cli.options import (
    AnswerOption,
    CacheOption,
    DeviceOption,
    EnvironmentOption,
    ForceOption,
    ImageSizeOption,
    PointOption,
    SourceArgument,
    argument,
    newest_study,
    option,
)
from scalestudy.cli.printing import err, out, show_document
from scalestudy.util.errors import UserError
from scalestudy.util.targets import refuse_target

if TYPE_CHECKING:
    from scalestudy.app.follow import Listener
    from scalestudy.cli.terminal_listener import Terminal
    from scalestudy.config.point import Point
    from scalestudy.config.settings import DataSettings
    from scalestudy.data.samples import Kind
    from scalestudy.features.model.find_model import FoundModel
    from scalestudy.features.model.predict import Predicted, Wanted


SHOWN = 20
"""Largest number of skipped images that are listed."""

SAMPLES = 8
"""Samples shown on the page of a data set."""

model_app = typer.Typer(
    cls=CommandGroup,
    help="Use a trained model: predict, evaluate, look at samples, export.",
    no_args_is_help=True,
)
Model = Annotated[
    Path | None,
    argument(
        "Run folder, or study (file or folder), of which the best run is used.",
        "STUDY",
        "the newest study here",
    ),
]
TaskFile = Annotated[
    Path | None,
    option(
        "Task file of the model, whose code then runs.",
        "FILE",
        "that of the training, if you have trained with it",
        name="--task",
    ),
]
Weights = Annotated[
    str, option("Weights of the last or of the best epoch.", "last|best")
]


@model_app.command("predict")
def predict_command(
    model: Annotated[
        Path,
        argument(
            "Run folder, or study (file or folder), of which the best run is used.",
            "STUDY",
        ),
    ],
    images: Annotated[
        list[str], argument("Images, or folders of images.", "IMAGES...")
    ],
    out_folder: Annotated[Path, option("Folder to write to.", "DIR", name="--out")],
    point: PointOption = None,
    weights: Weights = "last",
    task: TaskFile = None,
    environment: EnvironmentOption = None,
    overlay: Annotated[
        bool, option("Also write each mask laid over its image.", name="--overlay")
    ] = False,
    device: DeviceOption = "auto",
    force: ForceOption = False,
) -> None:
    """Predict masks or classes of images with a trained model.

    Writes the table DIR/predictions.csv and, for segmentation, DIR/masks/NAME.png: class indices with a
    palette, in the size of the image. Images are preprocessed as in training.

    Images that cannot be read are listed and skipped; the exit code is then 1.
    """
    from scalestudy.features.model import predict as prediction

    # Before the model is loaded, which takes seconds.
    refuse_target(out_folder, [model, *images], force=force)
    trained, terminal = _found(model, point, weights, task, environment)
    wanted = prediction.Wanted(tuple(images), out_folder, overlay, device, force)
    done = prediction.predict(trained, wanted, terminal)
    _print_predicted(done, wanted, trained.label)
    raise typer.Exit(1 if done.skipped else 0)


@model_app.command("evaluate")
def evaluate_command(
    model: Model = None,
    data: Annotated[
        str | None, option("Data set.", "SOURCE", "that of the run")
    ] = None,
    split: Annotated[
        str | None,
        option(
            "Samples to evaluate on.",
            "train|validation|test|all",
            "validation, or all of another data set",
        ),
    ] = None,
    point: PointOption = None,
    weights: Weights = "last",
    task: TaskFile = None,
    environment: EnvironmentOption = None,
    device: DeviceOption = "auto",
    form: AnswerOption = "table",
) -> None:
    """Evaluate a trained model on a data set, each sample once.

    The data set must have the classes of the training, in their order.
    """
    from scalestudy.features.model.evaluate import evaluate_model
    from scalestudy.report.number_format import format_number

    trained, terminal = _found(model, point, weights, task, environment)
    done = evaluate_model(trained, data, split, terminal, device=device)
    if form == "json":
        print(json.dumps(done._asdict(), indent=1))
        return
    console = out()
    console.print(
        f"{done.model} over {done.data}, {done.split}: {done.samples} samples",
        markup=False,
    )
    width = max(map(len, done.results))
    for name, value in done.results.items():
        console.print(f"  {name:<{width}}  {format_number(value, 4)}", markup=False)


@model_app.command("samples")
def samples_command(
    model: Model = None,
    out_file: Annotated[
        Path, option("HTML page to write.", "FILE", name="--out")
    ] = Path("samples.html"),
    point: PointOption = None,
    weights: Weights = "last",
    task: TaskFile = None,
    environment: EnvironmentOption = None,
    device: DeviceOption = "auto",
    force: ForceOption = False,
) -> None:
    """Show samples that a model predicts well and badly, with truth and prediction.

    All validation samples are ranked by their own loss. The page contains its pictures and needs no network.
    """
    from scalestudy.features.model.evaluate import write_gallery

    refuse_target(out_file, [model], force=force)
    trained, terminal = _found(model, point, weights, task, environment)
    judged = write_gallery(trained, out_file, terminal, device=device)
    out().print(
        f"{judged} validation samples evaluated with {trained.label}: {out_file}",
        markup=False,
    )


@model_app.command("export")
def export_model_command(
    out_path: Annotated[
        Path,
        option(
            "File (.keras, .onnx, .pt2), or folder of a SavedModel.",
            "PATH",
            name="--out",
        ),
    ],
    model: Model = None,
    point: PointOption = None,
    weights: Weights = "last",
    task: TaskFile = None,
    environment: EnvironmentOption = None,
    force: ForceOption = False,
) -> None:
    """Write a trained model in a format that loads without Scalestudy.

    The exported model takes images as they are stored (8 or 16 bits) and scales them itself. A JSON file
    beside it holds the names of its classes and the preprocessing.
    """
    from scalestudy.features.model.export_model import export_trained_model

    refuse_target(out_path, [model], force=force)
    trained, terminal = _found(model, point, weights, task, environment)
    beside = export_trained_model(trained, out_path, terminal, force=force)
    height, width, channels = trained.record.input_shape
    # PyTorch modules take channels first.
    sides = (channels, height, width)
    if trained.path.suffix == ".keras":
        sides = (height, width, channels)
    shape = " x ".join(map(str, sides))
    takes = f"inputs {shape}, {trained.record.dtype}, scaled inside"
    out().print(
        f"{trained.label}: {out_path} ({takes}); classes in {beside}",
        markup=False,
    )


def _found(
    path: Path | None,
    point: str | None,
    weights: str,
    task: Path | None,
    environment: Path | None,
) -> "tuple[FoundModel, Terminal]":
    from scalestudy.cli.terminal_listener import Terminal
    from scalestudy.features.model.find_model import find_model
    from scalestudy.store.permission import Permission

    # A record of a model may come from anyone: it starts no code but what is named here.
    permission = Permission(task, environment)
    model = find_model(
        path or newest_study(),
        point=point,
        weights=weights,
        permission=permission,
    )
    terminal = Terminal()
    for note in model.notes:
        terminal.note(note)
    return model, terminal


def _print_predicted(done: "Predicted", wanted: "Wanted", label: str) -> None:
    console = out()
    for shown, why in done.skipped[:SHOWN]:
        reason = why
        # Most reasons name the file.
        if shown not in why:
            reason = f"{shown}: {why}"
        err().print(f"Left out: {reason}", markup=False, style="red")
    if len(done.skipped) > SHOWN:
        err().print(
            f"... and {len(done.skipped) - SHOWN} more, in {wanted.out}/predictions.json",
            style="red",
        )
    if done.classes:
        counts = [f"{name} {count}" for name, count in sorted(done.classes.items())]
        console.print(f"Classes: {', '.join(counts)}", markup=False)
    left = ""
    if done.skipped:
        left = f", {len(done.skipped)} left out"
    console.print(
        f"{done.images} images predicted by {label}{left}: {done.table}",
        markup=False,
    )


data_app = typer.Typer(
    cls=CommandGroup,
    help="Inspect data sets, and prepare them before a study.",
    no_args_is_help=True,
)


@data_app.callback()
def _group() -> None:
    """Inspect data sets, and prepare them before a study."""


@data_app.command("show")
def show_data_command(
    what: SourceArgument,
    html: Annotated[
        Path | None, option("HTML page to write, with pictures.", "FILE", name="--out")
    ] = None,
    form: AnswerOption = "table",
    force: ForceOption = False,
) -> None:
    """Inspect a data set before training: its layout, counts, sizes, classes and mistakes.

    Reads every image of the source in its own size. Writes nothing but the page.
    """
    from scalestudy.cli.terminal_listener import Terminal
    from scalestudy.features.data_show.inspection import inspect_data
    from scalestudy.features.data_show.inspection_page import inspection_document
    from scalestudy.report.write_document import check_page_name

    if html is not None:
        check_page_name(html)
        refuse_target(html, [what], force=force)
    screen = Terminal()
    settings, kind, base, _ = data_settings_of(what, None, None, screen)
    inspections = []
    for data in settings:
        inspections.append(
            inspect_data(
                data,
                kind,
                base,
                samples=SAMPLES if html else 0,
                listener=screen,
            )
        )
    if form == "json":
        records = [inspection.as_json() for inspection in inspections]
        # A list only where the study sweeps its data.
        shown = records[0] if len(records) == 1 else records
        print(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        show_document(
            lambda: inspection_document(inspections, pictured=False),
            "table",
            None,
            {},
        )
    if html is not None:
        show_document(lambda: inspection_document(inspections), "html", html, {})


@data_app.command("prepare")
def prepare_data_command(
    what: SourceArgument,
    image_size: ImageSizeOption = None,
    cache: CacheOption = None,
) -> None:
    """Decode a data set once, so that runs start at once and need no network.

    Prints the layout that was found, the samples of each class in each split, and the files that were left
    out. Damaged files are an error, which names them.

    For a study file, models of your own tasks and with pretrained weights are built as well, to download
    their weights.
    """
    from scalestudy.app.prepare import data_summary, prepare_data
    from scalestudy.app.task_checks import fetch_weights
    from scalestudy.cli.terminal_listener import Terminal
    from scalestudy.config.settings import LaunchSettings

    terminal = Terminal()
    settings, kind, base, built = data_settings_of(what, image_size, cache, terminal)
    # A source alone has no study that sets a timeout.
    launch = LaunchSettings()
    if built:
        launch = built[0].launch
    within = launch.progress_timeout
    for data in settings:
        folder, split, training = prepare_data(data, kind, base, terminal, within)
        out().print(
            f"{data.source}: {training} training samples, prepared in {folder}",
            markup=False,
        )
        for line in data_summary(folder, split):
            out().print(f"  {line}", markup=False)
        for point in built:
            fetch_weights(point, folder, terminal, again=True)


def data_settings_of(
    what: str,
    image_size: tuple[int, int] | None,
    cache: Path | None,
    listener: "Listener",
) -> "tuple[list[DataSettings], Kind | None, Path, list[Point]]":
    """Data settings, their kind, the base of relative paths, and points to build: of a study or a source.

    Raises:
        UserError: The file is not a study, options are given with a study file, or the size is invalid.
    """
    from scalestudy.app.prepare import study_data
    from scalestudy.config import keys
    from scalestudy.config.settings import DataSettings

    if what.endswith(".toml"):
        if image_size or cache:
            raise UserError(
                "a study file alone",
                "options with it",
                "Set image_size and cache under [data] in the file.",
            )
        settings, kind, built = study_data(Path(what), listener)
        return settings, kind, Path(what).parent, built
    try:
        keys.check_value("data.image_size", image_size)
    except keys.WrongValue as wrong:
        given = " ".join(map(str, image_size or ()))
        raise UserError(
            str(wrong),
            f"--image-size {given}",
            "Give a height and a width.",
        ) from None
    place = None
    if cache:
        place = str(cache)
    data = DataSettings(
        source=what,
        image_size=image_size,
        cache=place,
    )
    return [data], None, Path(), []
