"""`scalestudy data show`: a data set before it is trained on."""

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
    samples: Annotated[int, typer.Option(help="Samples to picture on the page.", min=0, max=200)] = 8,
    all: Annotated[
        bool, typer.Option("--all", help="Read every image of a source that is not prepared.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option("--out", help="Write it as a page as well, with pictures (HTML).", metavar="FILE"),
    ] = None,
    format: Annotated[str, typer.Option(help="table or json.", metavar="FORMAT")] = "table",
) -> None:
    """Inspect a data set before it is trained on: what was understood, counts, sizes, classes, mistakes.

    Of a set that is prepared, every sample is read as it is trained on; else images of the source, whole and
    in their own size. Nothing is written but the page.
    """
    import json

    from scalestudy.cli.console import err, out
    from scalestudy.cli.data import settings_of
    from scalestudy.cli.formats import check_format
    from scalestudy.cli.terminal import Terminal
    from scalestudy.features.inspect.inspection import inspect_data
    from scalestudy.features.inspect.page import inspection_document
    from scalestudy.report.as_terminal import terminal
    from scalestudy.report.write_document import check_page_name, write_document
    from scalestudy.util.errors import UserError

    check_format(format)
    if html is not None:
        check_page_name(html)
    screen = Terminal()
    _, _, settings, kind, base, _ = settings_of(what, image_size, cache, screen, skip_bad=skip_bad)
    inspections = [
        inspect_data(data, kind, base, samples=samples if html else 0, everything=all, listener=screen)
        for data in settings
    ]
    if format == "json":
        found = [inspection.as_json() for inspection in inspections]
        print(json.dumps(found[0] if len(found) == 1 else found, indent=2, ensure_ascii=False))
    else:
        document = inspection_document(inspections, pictured=False)
        print(terminal(document, out().width, colour=out().is_terminal), end="")
    if html is not None:
        try:
            write_document(inspection_document(inspections), "html", html)
        except OSError as error:
            raise UserError(
                "a file that can be written", f"{html}: {error.strerror}", "Name another one with --out."
            ) from error
        err().print(f"Written: {html}", markup=False)
