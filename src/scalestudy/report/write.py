"""Writing a study's report: the one place of this room that touches the disk."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from scalestudy.analysis.read import read_study
from scalestudy.errors import UserError

if TYPE_CHECKING:
    from scalestudy.analysis.study import Study
    from scalestudy.study.store import StudyFolder

Format = Literal["table", "csv", "json", "html"]
FORMATS: tuple[Format, ...] = ("table", "csv", "json", "html")


@dataclass(frozen=True)
class ReportPaths:
    """Files of a written report."""

    html: Path
    csv: Path
    json: Path
    figures: tuple[Path, ...]


def write_report(
    folder: "StudyFolder", out: Path | None = None, *, study: "Study | None" = None
) -> ReportPaths:
    """Write `report.html`, `table.csv`, `table.json` and every figure as PNG and SVG.

    Args:
        folder: Study to report on, finished or not.
        out: Folder to write into; `report` in the study's folder when absent.
        study: The folder as analysed before; read and analysed when absent.
    """
    from scalestudy.report.figures import figures
    from scalestudy.report.html import to_html
    from scalestudy.report.images import draw
    from scalestudy.report.tabular import to_csv, to_json

    study = study or read_study(folder)
    out = Path(folder.path) / "report" if out is None else Path(out)
    out.mkdir(parents=True, exist_ok=True)
    pictures = [draw(figure) for figure in figures(study)]
    drawn = []
    for picture in pictures:
        drawn += [out / f"{picture.figure.name}.png", out / f"{picture.figure.name}.svg"]
        _replace(drawn[-2], picture.png)
        _replace(drawn[-1], picture.svg.encode())
    paths = ReportPaths(out / "report.html", out / "table.csv", out / "table.json", tuple(drawn))
    _replace(paths.csv, to_csv(study.rows).encode())
    _replace(paths.json, to_json(study).encode())
    link = Path(os.path.relpath(Path(folder.path).resolve(), out.resolve())).as_posix()
    _replace(paths.html, to_html(study, pictures, link).encode())
    return paths


def render(
    folder: "StudyFolder",
    format: str,
    width: int | None = None,
    colour: bool = False,
    *,
    study: "Study | None" = None,
) -> str:
    """The report as text in one format: "table", "csv", "json" or "html".

    Args:
        folder: Study to report on, finished or not.
        format: One of `FORMATS`.
        width: Columns of the terminal ("table" only); the terminal's own when absent.
        colour: Whether "table" may hold colour codes.
        study: The folder as analysed before; read and analysed when absent.

    Raises:
        UserError: The format is none of these.
    """
    if format not in FORMATS:
        raise UserError(
            f"a report format out of {', '.join(FORMATS)}", repr(format), "Choose one of these with --format."
        )
    study = study or read_study(folder)
    if format == "csv":
        from scalestudy.report.tabular import to_csv

        return to_csv(study.rows)
    if format == "json":
        from scalestudy.report.tabular import to_json

        return to_json(study)
    if format == "html":
        from scalestudy.report.figures import figures
        from scalestudy.report.html import to_html
        from scalestudy.report.images import draw

        return to_html(study, [draw(figure) for figure in figures(study)])
    from shutil import get_terminal_size

    from scalestudy.report.terminal import render_text

    return render_text(study, width or get_terminal_size((120, 40)).columns, colour)


def _replace(path: Path, content: bytes) -> None:
    # A reader never sees half a file, and an interrupted report leaves the last one in place.
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_bytes(content)
    os.replace(fresh, path)
