"""Write a study's report into its folder."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.analysis.read import read_study
from scalestudy.report.formats import FORMATS, Medium
from scalestudy.study.targets import refuse_target
from scalestudy.util.files import write_atomically

if TYPE_CHECKING:
    from scalestudy.analysis.findings import Findings
    from scalestudy.study.store import StudyFolder

PAGE = "html"


@dataclass(frozen=True)
class ReportPaths:
    """Files of a written report: the file of each format by name, and the figures."""

    files: Mapping[str, Path]
    figures: tuple[Path, ...]

    @property
    def page(self) -> Path:
        """The page to open in a browser."""
        return self.files[PAGE]


def write_report(
    folder: "StudyFolder", out: Path | None = None, *, findings: "Findings | None" = None
) -> ReportPaths:
    """Write `report.html`, `table.csv`, `table.json` and other formats' files; figures as PNG, SVG and PDF.

    Of figures that share one place, only the first gets files; the page and notebooks have the others.

    Args:
        folder: Study to report on, finished or not.
        out: Folder to write into; by default `report` in the study's folder.
        findings: Analysis of the folder, if available; otherwise it is read and analysed.

    Raises:
        UserError: `out` is among the records of a study.
    """
    from scalestudy.report.document import drawings
    from scalestudy.report.images import still
    from scalestudy.report.study_document import report_document

    findings = findings or read_study(folder)
    out = Path(folder.path) / "report" if out is None else Path(out)
    refuse_target(out)
    out.mkdir(parents=True, exist_ok=True)
    link = Path(os.path.relpath(Path(folder.path).resolve(), out.resolve())).as_posix()
    document = report_document(findings, link)
    pictures = {drawing.figure.name: still(drawing.figure) for drawing in drawings(document.blocks)}
    drawn = []
    for name, picture in pictures.items():
        for ending, content in (("png", picture.png), ("svg", picture.svg), ("pdf", picture.pdf)):
            drawn.append(out / f"{name}.{ending}")
            write_atomically(drawn[-1], content)
    files = {}
    for name in FORMATS.names():
        form = FORMATS.get(name)
        if form.file is not None:
            files[name] = out / form.file
            write_atomically(files[name], form.render(findings, Medium(document=document, pictures=pictures)))
    return ReportPaths(files, tuple(drawn))
