"""`scalestudy compare`: compare studies."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scalestudy.cli.console import show_document
from scalestudy.cli.options import FileOption, ForceOption, format_option, newest_study, open_study
from scalestudy.config.targets import refuse_target

if TYPE_CHECKING:
    from scalestudy.features.compare.comparison import Side

FORMATS = ("table", "json", "csv", "markdown", "html")


def compare(
    studies: Annotated[
        list[str],
        typer.Argument(
            help="Study files, results folders, files written by `report --share`, or files that"
            " `report --from` reads. NAME= sets a name. All are compared with the first; a single one with"
            " the newest other study here.",
            metavar="[NAME=]STUDY...",
        ),
    ],
    form: Annotated[str | None, format_option(*FORMATS)] = None,
    file: FileOption = None,
    force: ForceOption = False,
) -> None:
    """Compare studies: their settings, their results, and which differences are more than chance.

    The studies may differ in site, software or settings. Rows with the same strategy, workers and other swept
    values are compared.
    """
    from scalestudy.features.compare.comparison import compare as compare_sides
    from scalestudy.features.compare.page import compare_csv, compare_document, compare_json
    from scalestudy.report.write_document import form_by_ending

    refuse_target(file, [_split(study)[1] for study in studies], force=force)
    chosen = form_by_ending(form, file, FORMATS, "table")
    if len(studies) == 1:
        studies = [*studies, str(newest_study(besides=_split(studies[0])[1]))]
    sides = [_side(study) for study in studies]
    comparison = compare_sides(sides)
    programs = {"csv": partial(compare_csv, comparison), "json": partial(compare_json, comparison)}
    show_document(compare_document(comparison), chosen, file, programs)


def _split(argument: str) -> tuple[str, Path]:
    """Name and path of a study on the command line: PATH or NAME=PATH."""
    name, separator, rest = argument.partition("=")
    return (name, Path(rest)) if separator and name and not Path(argument).exists() else ("", Path(argument))


def _side(argument: str) -> "Side":
    from scalestudy.analysis.read import read_study
    from scalestudy.analysis.shared import is_shared, read_shared
    from scalestudy.config.differences import settings_of
    from scalestudy.config.task_sources import sources_of
    from scalestudy.features.compare.comparison import Side

    name, path = _split(argument)
    if is_shared(path):
        shared = read_shared(path)
        return Side(name or path.stem, shared.findings(), shared.asked, shared.not_known)
    if path.is_file() and path.suffix != ".toml":
        from scalestudy.features.imported.gather import import_findings

        return Side(name or path.stem, import_findings([str(path)]))
    folder = open_study(path)
    sources = {f"task: {file}": digest[:12] for file, digest in sources_of(folder.points()).items()}
    return Side(name or folder.path.resolve().name, read_study(folder), settings_of(folder.study) | sources)
