"""Writing a study's report: the one place of this room that touches the disk."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from scalestudy.analysis.read import read_study
from scalestudy.errors import UserError
from scalestudy.files import write_atomically

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings
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
    folder: "StudyFolder", out: Path | None = None, *, findings: "Findings | None" = None
) -> ReportPaths:
    """Write `report.html`, `table.csv`, `table.json` and every figure as PNG and SVG.

    Args:
        folder: Study to report on, finished or not.
        out: Folder to write into; `report` in the study's folder when absent.
        findings: The folder as analysed before; read and analysed when absent.
    """
    from scalestudy.report.figures import figures
    from scalestudy.report.html import to_html
    from scalestudy.report.images import draw
    from scalestudy.report.tabular import to_csv, to_json

    findings = findings or read_study(folder)
    out = Path(folder.path) / "report" if out is None else Path(out)
    out.mkdir(parents=True, exist_ok=True)
    pictures = [draw(figure) for figure in figures(findings)]
    drawn = []
    for picture in pictures:
        drawn += [out / f"{picture.figure.name}.png", out / f"{picture.figure.name}.svg"]
        write_atomically(drawn[-2], picture.png)
        write_atomically(drawn[-1], picture.svg)
    paths = ReportPaths(out / "report.html", out / "table.csv", out / "table.json", tuple(drawn))
    write_atomically(paths.csv, to_csv(findings.rows))
    write_atomically(paths.json, to_json(findings))
    link = Path(os.path.relpath(Path(folder.path).resolve(), out.resolve())).as_posix()
    write_atomically(paths.html, to_html(findings, pictures, link))
    return paths


def render(
    folder: "StudyFolder",
    format: str,
    width: int | None = None,
    colour: bool = False,
    *,
    findings: "Findings | None" = None,
) -> str:
    """The report as text in one format: "table", "csv", "json" or "html".

    Args:
        folder: Study to report on, finished or not.
        format: One of `FORMATS`.
        width: Columns of the terminal ("table" only); the terminal's own when absent.
        colour: Whether "table" may hold colour codes.
        findings: The folder as analysed before; read and analysed when absent.

    Raises:
        UserError: The format is none of these.
    """
    if format not in FORMATS:
        raise UserError(
            f"a report format out of {', '.join(FORMATS)}", repr(format), "Choose one of these with --format."
        )
    findings = findings or read_study(folder)
    if format == "csv":
        from scalestudy.report.tabular import to_csv

        return to_csv(findings.rows)
    if format == "json":
        from scalestudy.report.tabular import to_json

        return to_json(findings)
    if format == "html":
        from scalestudy.report.figures import figures
        from scalestudy.report.html import to_html
        from scalestudy.report.images import draw

        return to_html(findings, [draw(figure) for figure in figures(findings)])
    from shutil import get_terminal_size

    from scalestudy.report.terminal import render_text

    return render_text(findings, width or get_terminal_size((120, 40)).columns, colour)
