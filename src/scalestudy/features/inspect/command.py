"""`scalestudy data show`: a set before it is trained on."""

from pathlib import Path
from typing import Annotated

import typer


def show(
    what: Annotated[
        str,
        typer.Argument(help="A study file, or a source, as for `data prepare`.", metavar="STUDY_OR_SOURCE"),
    ],
    image_size: Annotated[
        tuple[int, int] | None,
        typer.Option(help="Height and width in pixels that it was prepared with.", metavar="H W"),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Go on without damaged files, as it was prepared.")
    ] = False,
    cache: Annotated[Path | None, typer.Option(help="Folder of prepared data sets.", metavar="DIR")] = None,
    samples: Annotated[int, typer.Option(help="Samples to picture.", min=0, max=200)] = 8,
    all: Annotated[
        bool, typer.Option("--all", help="Look at every image of a source that is not prepared.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write it as a page as well, with larger pictures.", metavar="FILE")
    ] = None,
    format: Annotated[str, typer.Option(help="table or json.", metavar="FORMAT")] = "table",
) -> None:
    """Show a data set before it is trained on: what was understood, counts, sizes, classes, mistakes.

    Of a set that is prepared, every sample is looked at, as it is trained on; else images of the source,
    whole and in their own size. Nothing is written but the page.
    """
    from scalestudy.cli.console import err, out
    from scalestudy.cli.data import settings_of
    from scalestudy.cli.formats import check_format
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.inspect.data_text import data_json, print_data
    from scalestudy.features.inspect.inspection import show_data
    from scalestudy.features.inspect.page import check_name, write_data_page

    check_format(format)
    if html is not None:
        check_name(html)
    terminal = Terminal()
    _, settings, kind, base, _ = settings_of(what, image_size, cache, terminal, skip_bad=skip_bad)
    shown = [
        show_data(each, kind, base, samples=samples, everything=all, listener=terminal) for each in settings
    ]
    if format == "json":
        print(data_json(shown))
    else:
        for each in shown:
            print_data(each, out())
    if html is not None:
        write_data_page(html, shown)
        err().print(f"Drawn: {html}", markup=False)
