"""A page over several studies, for `scalestudy report FOLDER`: the question and the choice of each."""

import os
from collections.abc import Sequence
from pathlib import Path

from scalestudy.analysis.findings import read_study
from scalestudy.launch.study_status import study_status
from scalestudy.report.document import Cell, Document, Heading, Paragraph, Table
from scalestudy.store.study_folder import StudyFolder
from scalestudy.util.errors import ScalestudyError

Line = tuple[str | Cell, ...]
"""The cells of a study's row."""
HEADINGS = (
    Heading("Study", numeric=False),
    Heading("Question", numeric=False),
    Heading("Choice", numeric=False),
    Heading("Runs"),
    Heading("When", numeric=False),
)


def lines_of(studies: Sequence[Path], beside: Path) -> tuple[Line, ...]:
    """A row for each study, the newest first; links lead from the folder `beside` to the studies' pages."""
    lines = [_line(study, beside) for study in studies]
    lines.sort(key=_when, reverse=True)
    return tuple(lines)


def _when(line: Line) -> str:
    """Return when the last run of a study's row ended; ISO dates sort as texts."""
    return str(line[-1])


def index_document(name: str, lines: tuple[Line, ...]) -> Document:
    """The page of these rows."""
    words = "Choices are those of each study's own report, which its name opens where it has been written."
    table = Table(HEADINGS, lines, name="studies", sortable=True)
    return Document(
        f"Studies in {name or 'this folder'}",
        (table, Paragraph(words)),
        "Scaling studies",
        live=True,
    )


def _line(path: Path, beside: Path) -> Line:
    try:
        folder = StudyFolder.open(path)
        overview = study_status(folder)
        findings = read_study(folder, overview=overview)
    except ScalestudyError as error:
        # One damaged study must not keep the others from being listed.
        why = f"It cannot be read: {error.received}. {error.action}"
        return path.name, "", why, "", ""
    link = ""
    page = path / "report" / "report.html"
    # Relative, so that studies and their index can be moved together.
    if page.exists():
        relative = os.path.relpath(page.resolve(), beside.resolve())
        link = Path(relative).as_posix()
    done = [status for status in overview.points if status.state == "done"]
    last = ""
    for run in findings.runs:
        last = max(last, run.result.finished or "")
    when = last[:16].replace("T", " ")
    question = folder.study.description or folder.study.title or ""
    runs = f"{len(done)} of {len(overview.points)}"
    name = Cell(path.name, link=link)
    return name, question, findings.advice.headline, runs, when
