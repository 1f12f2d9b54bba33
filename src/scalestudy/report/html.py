"""The report as one HTML file that needs no network: charts, pictures and scripts are all inside."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import key_of_run
from scalestudy.report.as_html import html_blocks
from scalestudy.report.cards import cards
from scalestudy.report.chips import chips
from scalestudy.report.document import anchor
from scalestudy.report.environment import environments
from scalestudy.report.formats import Format, Medium
from scalestudy.report.gallery import environment, section
from scalestudy.report.images import Picture
from scalestudy.report.notes import notes
from scalestudy.report.places import drawing, library, places
from scalestudy.report.run_lines import MOST, run_lines, states
from scalestudy.report.scores import score_tables
from scalestudy.report.sections import sections
from scalestudy.report.time_and_cost import NAME as DECISIVE
from scalestudy.report.view import shown, view

LEAST_TOOLS = 6
"""Rows of the table from which filters are worth their room."""
MOST_ROWS = 500
"""Rows of the table that a page shows, and the advised one; the forms for programs have all."""
LONG = 20
"""Rows from which a table scrolls within itself, under its headings."""


def to_html(findings: Findings, pictures: Sequence[Picture], study_link: str = "..") -> str:
    """Render the page.

    Args:
        findings: What to report.
        pictures: All its figures.
        study_link: Path from the page's folder to the study's, for the links to runs.
    """
    from scalestudy import __version__

    table, runs, more = view(findings), run_lines(findings, study_link), sections(findings)
    found = places(pictures)
    page = (
        environment()
        .get_template("report.html.j2")
        .render(
            findings=findings,
            version=__version__,
            cards=cards(findings),
            table=replace(table, lines=shown(table.lines, MOST_ROWS)),
            rows_left=len(table.lines) - len(shown(table.lines, MOST_ROWS)),
            chips=chips(findings) if len(table.lines) >= LEAST_TOOLS else [],
            tools=len(table.lines) >= LEAST_TOOLS,
            long=len(table.lines) > LONG,
            small_print=_small_print(findings),
            decisive=next((place for place in found if place.name == DECISIVE), None),
            places=[place for place in found if place.name != DECISIVE],
            notes=notes(findings),
            environments=environments(findings.runs),
            runs=runs[:MOST],
            runs_left=len(runs) - MOST,
            states=states(runs),
            sections=html_blocks(more),
            anchors=[(anchor(each), each.title) for each in more],
            gallery=_gallery(findings),
            scores=score_tables(findings),
            bundle=library() if pictures else "",
            charts=script_json(drawing(pictures)),
        )
    )
    return page + "\n"


def script_json(value: Any) -> str:
    """JSON that is safe inside a `<script>` element, whatever text it holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _small_print(findings: Findings) -> str:
    """What small figures and the mark in the table mean, where there are any."""
    repeated = any(row.runs > 1 for row in findings.rows)
    small = (
        "Small figures are the ends of 95 % intervals over seeds."
        if repeated
        else ("One run each: no interval says how far another run would differ.")
    )
    return f"{small} The advised row is marked." if findings.advice.choice else small


def _gallery(findings: Findings) -> dict[str, Any] | None:
    """Samples of one run: of the advised row, or else of the first that has left some."""
    choice = findings.advice.choice
    advised = [run for run in findings.runs if choice and key_of_run(run) == choice.key]
    for run in [*advised, *findings.runs]:
        if run.gallery is not None and run.gallery.samples:
            return {"run": run.result.name, **section(run.gallery)}
    return None


def _render(findings: Findings, medium: Medium) -> str:
    from scalestudy.report.figures import figures
    from scalestudy.report.images import draw

    pictures = medium.pictures
    if pictures is None:
        pictures = [draw(figure) for figure in figures(findings)]
    return to_html(findings, pictures, medium.study_link)


FORMAT = Format(_render, "report.html")
