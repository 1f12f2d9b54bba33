"""Every run and planned run of a study, as a page lists them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Planned, Run
from scalestudy.report.format import number
from scalestudy.util import units

MOST = 2000
"""Runs that a page lists; the forms for programs have all."""


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
    place: str
    """Place in the order in which the study's runs were taken, from 1; empty where it was not recorded."""
    nodes: str
    began: str
    finished: str
    link: str | None
    reason: str | None
    tail: tuple[str, ...]
    source: str = ""
    """File and lines that it was taken from; empty for a run of ours."""


def run_lines(findings: Findings, study_link: str) -> list[RunLine]:
    """Every run: those without a result with their state and reason, then the others with their times."""
    planned = {point.name: point for point in findings.planned}
    digits = max((row.digits for row in findings.rows), default=3)
    done = [_done(run, study_link, digits) for run in findings.runs]
    names = {run.result.name for run in findings.runs}
    return [_open(point, study_link) for name, point in planned.items() if name not in names] + done


def states(lines: Sequence[RunLine]) -> str:
    """How many runs are in each state, in words: "2 failed, 3 missing, 12 done"."""
    counts: dict[str, int] = {}
    for line in lines:
        counts[line.state] = counts.get(line.state, 0) + 1
    return ", ".join(f"{count} {state}" for state, count in counts.items())


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
        place="" if result.place is None else str(result.place + 1),
        nodes=_nodes(result.hosts),
        began="" if result.began is None else _minute(datetime.fromtimestamp(result.began, UTC).isoformat()),
        finished=_minute(result.finished),
        link=_link(run.folder, study_link),
        reason=result.oversubscribed,
        tail=(),
        source=str(run.source or ""),
    )


def _minute(time: str) -> str:
    """A time of day in ISO 8601 as a table shows it."""
    return time[:16].replace("T", " ")


def _nodes(hosts: Sequence[str]) -> str:
    return hosts[0] + (f" and {len(hosts) - 1} more" if len(hosts) > 1 else "") if hosts else ""


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
        place="",
        nodes="",
        began="",
        finished="",
        link=_link(point.folder, study_link),
        reason=point.reason,
        tail=point.tail,
    )


def _link(folder: str | None, study_link: str) -> str | None:
    return None if folder is None else quote(f"{study_link}/{folder}/")
