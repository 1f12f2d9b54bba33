"""The report as one HTML file that needs no network: charts, pictures and scripts are all inside."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

from scalestudy import units
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Planned, Run, key_of_run, metric_label
from scalestudy.report.as_html import html_blocks
from scalestudy.report.environment import environments
from scalestudy.report.format import number
from scalestudy.report.formats import Format, Medium
from scalestudy.report.gallery import environment, section
from scalestudy.report.images import Picture
from scalestudy.report.notes import notes
from scalestudy.report.scores import score_tables
from scalestudy.report.sections import sections
from scalestudy.report.style import config
from scalestudy.report.view import view


@dataclass(frozen=True)
class Card:
    """A key number."""

    name: str
    value: str
    remark: str = ""


@dataclass(frozen=True)
class RunLine:
    """One run or planned run, as listed."""

    name: str
    seed: int | None
    state: str
    training: str
    wall: str
    quality: str
    memory: str
    finished: str
    link: str | None
    reason: str | None
    tail: tuple[str, ...]
    source: str = ""
    """File and lines that it was taken from; empty for a run of ours."""


def to_html(findings: Findings, pictures: Sequence[Picture], study_link: str = "..") -> str:
    """Render the page.

    Args:
        findings: What to report.
        pictures: Its figures, drawn.
        study_link: Path from the page's folder to the study's, for the links to runs.
    """
    from scalestudy import __version__

    templates = environment()
    page = templates.get_template("report.html.j2").render(
        findings=findings,
        version=__version__,
        cards=cards(findings),
        table=view(findings),
        pictures=pictures,
        notes=notes(findings),
        environments=environments(findings.runs),
        runs=run_lines(findings, study_link),
        sections=html_blocks(sections(findings)),
        gallery=_gallery(findings),
        scores=score_tables(findings),
        bundle=_safe_script(_bundle()) if pictures else "",
        charts=script_json(_charts(pictures)),
    )
    return page + "\n"


def cards(findings: Findings) -> list[Card]:
    """Key numbers of the advised point."""
    choice, advice = findings.advice.choice, findings.advice
    done = sum(point.state == "done" for point in findings.planned)
    progress = Card(
        "Runs", str(len(findings.runs)), f"{done} of {len(findings.planned)} done" if findings.planned else ""
    )
    if choice is None:
        return [progress]
    speed, quality, change = choice.speed.steady, choice.quality, findings.advice.verdict
    found = [
        Card("Advised workers", str(choice.workers), f"with {choice.strategy}"),
        Card("Speed-up", number(speed.value, 2), _span(speed.low, speed.high, 2)),
        Card("Efficiency", number(choice.efficiency.value, 2), f"at least {findings.target:g} asked for"),
        Card(
            metric_label(choice.metric),
            number(quality.value, choice.digits),
            change.sentence if change else "",
        ),
    ]
    if advice.worker_hours is not None:
        before = advice.baseline_worker_hours
        remark = f"{units.cost(before)} with 1 worker" if before is not None else ""
        found.append(Card("Worker time a training", units.cost(advice.worker_hours), remark))
    return [*found, progress]


def run_lines(findings: Findings, study_link: str) -> list[RunLine]:
    """Every run: the finished ones with their times, the others with their state and reason."""
    planned = {point.name: point for point in findings.planned}
    digits = max((row.digits for row in findings.rows), default=3)
    done = [_done(run, study_link, digits) for run in findings.runs]
    names = {run.result.name for run in findings.runs}
    return done + [_open(point, study_link) for name, point in planned.items() if name not in names]


def script_json(value: Any) -> str:
    """JSON that is safe inside a `<script>` element, whatever text it holds."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _gallery(findings: Findings) -> dict[str, Any] | None:
    """Samples of one run: of the advised row, or else of the first that has left some."""
    choice = findings.advice.choice
    advised = [run for run in findings.runs if choice and key_of_run(run) == choice.key]
    for run in [*advised, *findings.runs]:
        if run.gallery is not None and run.gallery.samples:
            return {"run": run.result.name, **section(run.gallery)}
    return None


def _charts(pictures: Sequence[Picture]) -> dict[str, Any]:
    specs = {picture.figure.name: _without_title(picture.figure.spec) for picture in pictures}
    return {"light": config() | {"background": "transparent"}, "dark": config(dark=True), "specs": specs}


def _without_title(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key != "title"}


@cache
def _bundle() -> str:
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    # The snippet is optional; the type stubs say otherwise.
    script: str = vl_convert.javascript_bundle(vl_version=version)  # type: ignore[call-arg]
    return script


def _safe_script(script: str) -> str:
    # Inside a script's strings "<\/script" means the same and does not end the element.
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _done(run: Run, study_link: str, digits: int) -> RunLine:
    result = run.result
    peak = max(result.peak_memory_bytes, default=0)
    return RunLine(
        name=result.name,
        seed=result.seed,
        state="oversubscribed" if result.oversubscribed else "elsewhere" if run.foreign else "done",
        training=_duration(result.training_seconds),
        wall=_duration(result.wall_seconds),
        quality=number(result.quality, digits),
        memory=units.size(peak) if peak else "",
        finished=result.finished[:16].replace("T", " "),
        link=_link(run.folder, study_link),
        reason=result.oversubscribed,
        tail=(),
        source=str(run.source or ""),
    )


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else units.duration(seconds)


def _open(point: Planned, study_link: str) -> RunLine:
    return RunLine(
        name=point.name,
        seed=point.seed,
        state=point.state,
        training="",
        wall="",
        quality="",
        memory="",
        finished="",
        link=_link(point.folder, study_link),
        reason=point.reason,
        tail=point.tail,
    )


def _link(folder: str | None, study_link: str) -> str | None:
    return None if folder is None else quote(f"{study_link}/{folder}/")


def _span(low: float | None, high: float | None, digits: int) -> str:
    if low is None or high is None:
        return "one run: no interval"
    return f"{number(low, digits)} to {number(high, digits)}" if low != high else ""


def _render(findings: Findings, medium: Medium) -> str:
    from scalestudy.report.figures import figures
    from scalestudy.report.images import draw

    pictures = medium.pictures
    if pictures is None:
        pictures = [draw(figure) for figure in figures(findings)]
    return to_html(findings, pictures, medium.study_link)


FORMAT = Format(_render, "report.html")
