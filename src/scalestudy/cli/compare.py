"""`scalestudy compare`: studies side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scalestudy.cli.study_argument import open_study

if TYPE_CHECKING:
    from scalestudy.features.compare.comparison import Comparison, Side

EPILOG = """\b
Examples:
  Two sites:
    scalestudy compare here=studies/unet there=/scratch/unet --out sites.html
  A new version against the last one, in a pipeline: exit code 1 if it is slower by more than 5 %
    scalestudy compare before=old/digits after=studies/digits --fail-if-slower 5%
"""
FORMATS = ("table", "json", "csv", "markdown", "html", "latex")


def compare(
    studies: Annotated[
        list[str],
        typer.Argument(
            help="Study files, results folders, or files that `report --from` takes, each with a name"
            " of your own before it if you like (NAME=STUDY); all are held against the first. A single one is"
            " held against the newest study here.",
            metavar="[NAME=]STUDY...",
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
    from scalestudy.report.write_document import form_by_ending

    share = _share(slower) if slower is not None else None
    chosen = form_by_ending(form, file, FORMATS, "table")
    sides = [_side(study) for study in studies]
    if len(sides) == 1:
        sides.append(_side(None))
    comparison = compare_sides(sides)
    _write(comparison, chosen, file)
    if share is None:
        return
    rows = slower_rows(comparison, share)
    for row in rows:
        other = comparison.sides[row.other].name
        err().print(f"Slower by more than {slower}: {row.key.label} on {other}", markup=False)
    if rows:
        raise typer.Exit(1)


def _side(argument: str | None) -> "Side":
    """A study as the command line names it: PATH or NAME=PATH; None for the newest one here."""
    from scalestudy.analysis.read import read_study
    from scalestudy.features.compare.comparison import Side
    from scalestudy.study.differences import settings_of

    name, separator, rest = (argument or "").partition("=")
    named = bool(separator and name) and not Path(argument or "").exists()
    path = Path(rest if named else argument) if argument is not None else None
    if path is not None and path.is_file() and path.suffix != ".toml":
        from scalestudy.features.imported.gather import import_findings

        return Side(name if named else path.stem, import_findings([str(path)]))
    folder = open_study(path)
    own_name = folder.path.resolve().name
    return Side(name if named else own_name, read_study(folder), settings_of(folder.study))


def _write(comparison: "Comparison", form: str, file: Path | None) -> None:
    from scalestudy.cli.console import out
    from scalestudy.features.compare.page import compare_csv, compare_document, compare_json
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
