"""`scalestudy data`: data sets, prepared ahead."""

from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer(help="Prepare data sets ahead of a study.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Prepare data sets ahead of a study."""


@app.command("prepare")
def prepare(
    what: Annotated[
        str,
        typer.Argument(
            help="A study file, or a source: a folder, a table of images, an .npz file, indents, digits.",
            metavar="STUDY_OR_SOURCE",
        ),
    ],
    image_size: Annotated[
        tuple[int, int] | None,
        typer.Option(help="Height and width in pixels that images are resized to.", metavar="H W"),
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder of prepared data sets.", metavar="DIR")] = None,
    storage: Annotated[
        Literal["auto", "arrays", "encoded"],
        typer.Option(help="How it is kept: encoded takes less space, and is decoded while training."),
    ] = "auto",
) -> None:
    """Decode a data set once, so that runs start at once and need no network.

    Says how it was understood, how many samples of each class are in each part of its split, and what was
    left out of it, now and each time again; what is damaged is refused by name.

    Of a study file, the model of a task of your own or with pretrained weights is built as well, so that its
    weights are here.
    """
    from scalestudy.cli.console import out
    from scalestudy.cli.terminal import Terminal
    from scalestudy.conduct.prepare import prepare_data, study_data, told
    from scalestudy.conduct.weights import fetch_weights
    from scalestudy.errors import UserError
    from scalestudy.study import keys
    from scalestudy.study.settings import DataSettings

    terminal = Terminal()
    if what.endswith(".toml"):
        if image_size or cache or storage != "auto":
            raise UserError(
                "a study file alone",
                "options beside it",
                "Give image_size, cache and storage under [data] in the file.",
            )
        task, settings, kind, trained = study_data(Path(what), terminal)
        base = Path(what).parent
    else:
        try:
            keys.checked("data.image_size", image_size)
        except keys.WrongValue as wrong:
            given = " ".join(map(str, image_size or ()))
            raise UserError(str(wrong), f"--image-size {given}", "Give a height and a width.") from None
        folder = str(cache) if cache else None
        settings = [DataSettings(source=what, image_size=image_size, cache=folder, storage=storage)]
        task, kind, base, trained = None, None, Path(), []
    for each in settings:
        folder, split, training = prepare_data(each, kind, base, terminal)
        out().print(f"{each.source}: {training} training samples, prepared in {folder}", markup=False)
        for line in told(folder, split):
            out().print(f"  {line}", markup=False)
        for train in trained:
            assert task is not None
            fetch_weights(task, train, folder, terminal, again=True)
