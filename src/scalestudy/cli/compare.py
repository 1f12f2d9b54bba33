"""`scalestudy compare`: studies side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings
    from scalestudy.features.compare.comparison import Comparison

EPILOG = """\b
Examples:
  Two sites, and which strategy is best on each:
    scalestudy compare here=studies/unet there=/scratch/unet --out sites.html
  A new version against the last one, in a pipeline: exit code 1 if it is slower by more than 5 %
    scalestudy compare before=old/digits after=studies/digits --fail-if-slower 5%
"""
FORMATS = ("table", "json", "csv", "markdown", "html", "latex")


def compare(
    studies: Annotated[
        list[str],
        typer.Argument(
            help="Results folders, or files that `report --from` takes, each with a name"
            " of your own before it if you like (NAME=DIR); all are held against the first.",
            metavar="[NAME=]DIR...",
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}; by the ending of --out, else table.",
            metavar="FORMAT",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="File to write instead of printing; figures of Markdown and LaTeX go beside it.",
            metavar="FILE",
        ),
    ] = None,
    slower: Annotated[
        str | None,
        typer.Option(
            "--fail-if-slower",
            help="Exit code 1 if a row is slower than on the first by more than this, for certain: 5%.",
            metavar="SHARE",
        ),
    ] = None,
) -> None:
    """Hold studies against the first: what was asked, what differs, and what of it is more than chance.

    Sites, versions or settings: rows with the same strategy, workers and other swept values are compared.
    """
    from scalestudy.cli.console import err
    from scalestudy.features.compare.comparison import compare as compare_sides
    from scalestudy.features.compare.comparison import slower as slower_rows
    from scalestudy.features.compare.side import read_side
    from scalestudy.report.endings import form_by_ending

    share = _share(slower) if slower is not None else None
    chosen = form_by_ending(form, file, FORMATS, "table")
    comparison = compare_sides([read_side(study, _read_file) for study in studies])
    _answer(comparison, chosen, file)
    if share is None:
        return
    found = slower_rows(comparison, share)
    for row in found:
        other = comparison.sides[row.other].name
        err().print(f"Slower by more than {slower}: {row.key.label} on {other}", markup=False)
    if found:
        raise typer.Exit(1)


def _read_file(path: Path) -> "Findings":
    from scalestudy.features.imported.gather import import_findings

    return import_findings([str(path)])


def _answer(comparison: "Comparison", form: str, file: Path | None) -> None:
    from scalestudy.cli.console import out
    from scalestudy.features.compare.data import compare_csv, compare_json
    from scalestudy.features.compare.page import compare_document
    from scalestudy.report.as_terminal import terminal
    from scalestudy.report.write_document import render_document, write_document
    from scalestudy.util.files import write_atomically

    console = out()
    if form in ("csv", "json"):
        text = (compare_csv if form == "csv" else compare_json)(comparison)
    elif form == "table":
        coloured = console.is_terminal and file is None
        text = terminal(compare_document(comparison), console.width, coloured)
    elif file is None:
        text = render_document(compare_document(comparison), form)
    else:
        write_document(compare_document(comparison), form, file)
        console.print(f"Wrote {file}", markup=False)
        return
    if file is None:
        print(text, end="")
        return
    write_atomically(file, text)
    console.print(f"Wrote {file}", markup=False)


def _share(text: str) -> float:
    from scalestudy.util.errors import UserError

    number = text.strip().removesuffix("%").strip()
    try:
        share = float(number) / 100
    except ValueError:
        share = -1.0
    if not text.strip().endswith("%") or not 0 <= share < 1:
        raise UserError("a share as 5%, from 0% up to below 100%", repr(text), "Correct --fail-if-slower.")
    return share
