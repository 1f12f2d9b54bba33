"""`scalestudy data`: inspect and prepare data sets."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from scalestudy.cli.console import out, show_document
from scalestudy.cli.help import CommandGroup
from scalestudy.cli.options import (
    AnswerOption,
    CacheOption,
    ForceOption,
    ImageSizeOption,
    SkipBadOption,
    SourceArgument,
)
from scalestudy.config.targets import refuse_target
from scalestudy.util.errors import UserError

if TYPE_CHECKING:
    from scalestudy.app.listener import Listener
    from scalestudy.config.point import Point
    from scalestudy.config.settings import DataSettings
    from scalestudy.data.sources.registry import Kind

app = typer.Typer(
    cls=CommandGroup, help="Inspect data sets, and prepare them before a study.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """Inspect data sets, and prepare them before a study."""


@app.command("show")
def show(
    what: SourceArgument,
    image_size: ImageSizeOption = None,
    skip_bad: SkipBadOption = False,
    cache: CacheOption = None,
    samples: Annotated[int, typer.Option(help="Samples shown on the page.", min=0, max=200)] = 8,
    html: Annotated[
        Path | None,
        typer.Option("--out", help="HTML page to write, with pictures.", metavar="FILE"),
    ] = None,
    form: AnswerOption = "table",
    force: ForceOption = False,
) -> None:
    """Inspect a data set before training: its layout, counts, sizes, classes and mistakes.

    Reads every sample of a prepared data set as training does, else every image of the source in its own
    size. Writes nothing but the page.
    """
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.inspect.inspection import inspect_data, inspection_document
    from scalestudy.report.write_document import check_page_name

    if html is not None:
        check_page_name(html)
        refuse_target(html, [what], force=force)
    screen = Terminal()
    settings, kind, base, _ = settings_of(what, image_size, cache, screen, skip_bad=skip_bad)
    inspections = [
        inspect_data(data, kind, base, samples=samples if html else 0, listener=screen) for data in settings
    ]
    if form == "json":
        records = [inspection.as_json() for inspection in inspections]
        print(json.dumps(records[0] if len(records) == 1 else records, indent=2, ensure_ascii=False))
    else:
        show_document(inspection_document(inspections, pictured=False), "table", None, {})
    if html is not None:
        show_document(inspection_document(inspections), "html", html, {})


@app.command("prepare")
def prepare(
    what: SourceArgument,
    image_size: ImageSizeOption = None,
    skip_bad: SkipBadOption = False,
    cache: CacheOption = None,
    storage: Annotated[
        Literal["auto", "arrays", "encoded"],
        typer.Option(help="Storage: encoded needs less space, but is decoded while training."),
    ] = "auto",
) -> None:
    """Decode a data set once, so that runs start at once and need no network.

    Prints the layout that was found, the samples of each class in each split, and the files that were left
    out. Damaged files are an error, which lists them all, unless --skip-bad is given. A public data set is
    downloaded.

    For a study file, models of your own tasks and with pretrained weights are built as well, to download
    their weights.
    """
    from scalestudy.app.prepare import data_summary, prepare_data
    from scalestudy.app.weights import fetch_weights
    from scalestudy.cli.terminal import Terminal
    from scalestudy.config.settings import LaunchSettings

    terminal = Terminal()
    settings, kind, base, built = settings_of(
        what, image_size, cache, terminal, skip_bad=skip_bad, storage=storage
    )
    within = (built[0].launch if built else LaunchSettings()).progress_timeout
    for data in settings:
        folder, split, training = prepare_data(data, kind, base, terminal, within)
        out().print(f"{data.source}: {training} training samples, prepared in {folder}", markup=False)
        for line in data_summary(folder, split):
            out().print(f"  {line}", markup=False)
        for point in built:
            fetch_weights(point, folder, terminal, again=True)


def settings_of(
    what: str,
    image_size: tuple[int, int] | None,
    cache: Path | None,
    listener: "Listener",
    *,
    skip_bad: bool = False,
    storage: Literal["auto", "arrays", "encoded"] = "auto",
) -> "tuple[list[DataSettings], Kind | None, Path, list[Point]]":
    """Data settings, their kind, the base of relative paths, and points to build: of a study or a source.

    Raises:
        UserError: The file is not a study, options are given with a study file, or the size is invalid.
    """
    from scalestudy.app.prepare import study_data
    from scalestudy.config import keys
    from scalestudy.config.settings import DataSettings

    if what.endswith(".toml"):
        if image_size or cache or skip_bad or storage != "auto":
            raise UserError(
                "a study file alone",
                "options with it",
                "Set image_size, cache, skip_bad and storage under [data] in the file.",
            )
        settings, kind, built = study_data(Path(what), listener)
        return settings, kind, Path(what).parent, built
    try:
        keys.checked("data.image_size", image_size)
    except keys.WrongValue as wrong:
        given = " ".join(map(str, image_size or ()))
        raise UserError(str(wrong), f"--image-size {given}", "Give a height and a width.") from None
    place = str(cache) if cache else None
    data = DataSettings(source=what, image_size=image_size, cache=place, skip_bad=skip_bad, storage=storage)
    return [data], None, Path(), []
