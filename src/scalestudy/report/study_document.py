"""The report of a study as a document, for a page, Markdown and a terminal, and its files."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.read import read_study
from scalestudy.config.point import REPEATS
from scalestudy.config.targets import refuse_target
from scalestudy.report.against_workers import efficiency, quality, speedup
from scalestudy.report.details import all_metrics, every_run, key_numbers, reasons, samples_of
from scalestudy.report.document import (
    Block,
    Document,
    Drawing,
    Folded,
    Items,
    Paragraph,
    Section,
)
from scalestudy.report.figure import Figure, still
from scalestudy.report.formats import FORMATS, Format, Medium, sections
from scalestudy.report.losses import losses
from scalestudy.report.notes import environment_table, notes
from scalestudy.report.results import results_table
from scalestudy.report.time_and_cost import NAME as DECISIVE
from scalestudy.report.time_and_cost import phases, time_and_cost
from scalestudy.report.write_document import beside, render_document
from scalestudy.util.files import write_atomically

if TYPE_CHECKING:
    from scalestudy.store.study_folder import StudyFolder


def report_document(findings: Findings, study_link: str = "..", *, drawn: bool = True) -> Document:
    """The report: decision, results, open questions, figures, sections, and how it was measured.

    `study_link` is the path from the page's folder to the study's, for links to runs. A terminal shows no
    figures: they need not be `drawn`.
    """
    advice = findings.advice
    cost = [Paragraph(advice.cost)] if advice.cost else []
    decision: tuple[Block, ...] = (Paragraph(advice.headline), *cost, *_items(advice.sentences))
    blocks: list[Block] = [Section("Decision", decision, style="advice"), key_numbers(findings)]
    shown = places(figures(findings)) if drawn else []
    if findings.rows:
        first = [drawing for drawing in shown if drawing.figure.name == DECISIVE]
        blocks.append(
            Section("Results", (*first, results_table(findings), Paragraph(_small_print(findings))))
        )
    if unsettled := [*advice.open_questions, *reasons(findings)]:
        blocks.append(Section("Not settled", _items(unsettled), "open", "open"))
    if tables := all_metrics(findings):
        title = "All metrics, by class" if len(tables) > 1 else "All metrics"
        blocks.append(Folded(title, tuple(tables), "metrics", page_only=True))
    others = tuple(drawing for drawing in shown if drawing.figure.name != DECISIVE)
    if others:
        blocks.append(Section("Figures", others, style="figures"))
    blocks += sections(findings)
    if samples := samples_of(findings):
        blocks.append(samples)
    if findings.rows:
        blocks.append(Section("How this was measured", _items(notes(findings)), "measured"))
    if environment := environment_table(findings.runs):
        blocks.append(Folded("Environment", (environment,)))
    if runs := every_run(findings, study_link):
        blocks.append(runs)
    return Document(findings.name, tuple(blocks), "Scaling study", live=True)


def _items(lines: Collection[str]) -> tuple[Items, ...]:
    return (Items(tuple(lines)),) if lines else ()


def _small_print(findings: Findings) -> str:
    """Meaning of the intervals and of the mark in the table."""
    repeated = any(row.runs > 1 for row in findings.rows)
    splits = any(run.result.swept.keys() & REPEATS for run in findings.runs)
    over = "seeds and splits" if splits else "seeds"
    text = (
        f"Intervals are 95 % confidence intervals over {over}."
        if repeated
        else "One run each, so there are no intervals: chance differences are not visible."
    )
    return f"{text} The advised row is marked." if findings.advice.choice else text


def _form(name: str, file: str) -> Format:
    def rendered(findings: Findings, medium: Medium) -> str:
        document = medium.document or report_document(findings)
        return render_document(document, name, beside(medium.pictures, name), medium.pictures)

    return Format(rendered, file)


HTML, MARKDOWN = _form("html", "report.html"), _form("markdown", "report.md")


MAKERS: tuple[Callable[[Findings], list[Figure]], ...] = (
    time_and_cost,
    speedup,
    quality,
    efficiency,
    phases,
    losses,
)


def figures(findings: Findings) -> list[Figure]:
    """All figures for which the finished runs have data, those of a group one after another."""
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        return [figure for make in MAKERS for figure in make(findings)]


def places(made: Sequence[Figure]) -> list[Drawing]:
    """Group the figures by place, each with the others that can be selected there."""
    groups: dict[str, list[Figure]] = {}
    for figure in made:
        groups.setdefault(figure.group or figure.name, []).append(figure)
    return [Drawing(first, tuple(others)) for first, *others in groups.values()]


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
    folder: "StudyFolder", out: Path | None = None, *, findings: Findings | None = None
) -> ReportPaths:
    """Write `report.html`, `table.csv`, `table.json` and other formats' files; figures as PNG, SVG and PDF.

    Of figures that share one place, only the first gets files; the page and notebooks have the others. `out`
    is by default the folder `report` in the study's folder. Without `findings`, the folder is read and
    analysed.

    Raises:
        UserError: `out` is among the records of a study.
    """
    from scalestudy.report.document import drawings

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
