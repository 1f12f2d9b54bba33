"""The answer of `scalestudy advise`, as a document and as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.features.advise.goals import Candidate, GoalAnswer, candidates_of
from scalestudy.features.advise.larger_runs import LOSSES, LargerRuns
from scalestudy.report.as_terminal import terminal
from scalestudy.report.document import Block, Document, Heading, Items, Paragraph, Section, Table
from scalestudy.report.figure_data import downsample
from scalestudy.report.number_format import decimals, time_unit, with_interval
from scalestudy.util import units

RANGES = (
    "Ranges hold 95 % of the draws of all assumptions, which --format json lists; they are no confidence"
    " intervals."
)
MOST_LINES, WIDTH = 30, 120
"""Lines of an answer with larger runs in a terminal, and columns of any answer."""
SIZES = ((12, 4), (9, 4), (7, 4), (6, 4), (5, 4), (4, 4), (5, 2), (4, 2), (5, 0), (4, 0), (3, 0), (2, 0))
"""Rows of a series of larger runs, and candidates and reasons beside them: the first that fit are shown."""


def advise_text(findings: Findings, answer: GoalAnswer, width: int = WIDTH, colour: bool = False) -> str:
    """Return the answer for a terminal, with as many larger runs as fit into `MOST_LINES` lines."""
    text = ""
    for series, size in product(range(len(answer.larger), 0, -1) or [0], SIZES):
        text = terminal(advise_document(findings, answer, series, size), min(width, WIDTH), colour)
        if text.count("\n") <= MOST_LINES:
            break
    return text


def advise_document(
    findings: Findings, answer: GoalAnswer, series: int | None = None, size: tuple[int, int] = SIZES[0]
) -> Document:
    """Return the answer, what it is based on, and the open questions.

    Larger runs take the place of the advice's sentences and questions; `series` of them (None for all) are
    shown, each with rows and what is beside them as in `SIZES`.
    """
    rows, beside = size
    advice, larger, deadline = findings.advice, answer.larger[:series], answer.goal.deadline
    blocks: list[Block] = [Paragraph(headline(findings, answer))]
    shown = [candidate for candidate in (answer.best, *answer.others, answer.predicted) if candidate]
    reasons = [f"{reason[0].upper()}{reason[1:]}." for reason in answer.reasons]
    if larger:
        shown = shown[:beside] if deadline else []
        left = len(reasons) - beside
        reasons = reasons[:beside] + [f"{left} more reasons: --format json."] * (left > 0)
    elif deadline is None:
        blocks.append(Items(tuple(filter(None, (advice.cost, *advice.sentences)))))
        if advice.open_questions:
            blocks += [Paragraph("Not settled:"), Items(advice.open_questions)]
    if shown:
        kinds = (Heading("Count", numeric=False), [str(row.kind) for row in shown])
        blocks.append(_table(findings, shown, [kinds], name="advised"))
    if reasons:
        blocks.append(Items(tuple(reasons)))
    if larger:
        lines = [sentence(each, advice.decision.target) for each in larger]
        lines += [f"{len(answer.larger) - len(larger)} more: --format json."] * (larger != answer.larger)
        items, table = Items(tuple(lines)), _larger_table(findings, larger, rows)
        blocks.append(Section("Larger runs, from one worker", (Paragraph(RANGES), items, table)))
    return Document(f"{findings.name}: what to ask for", tuple(blocks))


def advise_json(findings: Findings, answer: GoalAnswer) -> str:
    """Return the answer for programs, in seconds and unit-hours."""
    decision, deadline = findings.advice.decision, answer.goal.deadline
    record: dict[str, Any] = {
        "schema_version": 1,
        "study": findings.name,
        "goal": {"aim": "deadline" if deadline else "efficiency", "deadline_seconds": deadline},
        "cost_unit": f"{decision.bill}-hours",
        "cost_efficiency_target": decision.target,
        "kind": decision.kind,
        "provisional": list(decision.provisional),
        "sure": answer.sure,
        "best": _record(answer.best) if answer.best else None,
        "others": [_record(candidate) for candidate in answer.others],
        "predicted": _record(answer.predicted) if answer.predicted else None,
        "reasons": list(answer.reasons),
        "open_questions": list(findings.advice.open_questions),
        "larger_runs": [
            {
                "strategy": series.key.strategy,
                "swept": series.key.swept,
                "collective": series.collective,
                "algorithm": series.algorithm,
                "assumptions": [
                    dict(zip(("name", "value", "because"), assumption, strict=True))
                    for assumption in series.assumptions
                ],
                "runs": [asdict(run) for run in series.runs],
            }
            for series in answer.larger
        ],
    }
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _record(row: Candidate) -> dict[str, Any]:
    return {
        "strategy": row.key.strategy,
        "swept": row.key.swept,
        "workers": row.key.workers,
        "kind": row.kind,
        "seconds": asdict(row.seconds),
        "cost": asdict(row.cost),
        "cost_efficiency": asdict(row.efficiency),
    }


def headline(findings: Findings, answer: GoalAnswer) -> str:
    """Return the recommendation in one or two sentences."""
    best, predicted, advised = answer.best, answer.predicted, findings.advice.headline
    if answer.goal.deadline is None:
        if not predicted:
            return advised
        return (
            f"{advised} From one worker and the network {predicted.key.label} would keep"
            f" {with_interval(predicted.efficiency, 2)} under the stated assumptions: measure it before you"
            " ask for it."
        )
    hours = answer.goal.deadline / 3600
    done = f"{hours:.0f} h" if hours >= 1 and hours.is_integer() else units.duration(3600 * hours)
    if best is None:
        sound = not all(verdict.seems_worse for verdict in findings.advice.decision.verdicts.values())
        known = f"No row of sufficient quality is known to finish in {done}."
        return known if sound else f"No row is advised for {done}: {advised}"
    ask = "Ask" if answer.sure else "Provisionally, ask" if best.kind == "measured" else "As predicted, ask"
    return f"{ask} for {best.key.label}: the cheapest training that finishes in {done}."


def sentence(series: LargerRuns, target: float) -> str:
    """State up to how many workers a strategy is expected to pay (median and range), and what limits it."""
    runs, label = series.runs, series.key.series_label
    count, low, high = (_paying(series, target, end) for end in ("value", "low", "high"))
    ends = "" if low == high else f" (range {low} to {high})"
    run = next((run for run in runs if run.workers > count), runs[-1])
    if all(run.cost_efficiency.value is None for run in runs):
        text = f"Cannot tell how many workers are worthwhile with {label}: there is no cost to compare with"
        run = runs[-1]
    elif run.workers == count:
        text = f"{label} is expected to pay up to {count} workers{ends}, the most considered"
    else:
        number = f"up to {count} workers" if count > 1 else "on one worker only"
        text = f"{label} is expected to pay {number}{ends}: at {run.workers} its cost efficiency is "
        text += f"{run.cost_efficiency.value or 0.0:.2f}, below {target:g}"
    if run.lost_to:
        share = run.parts[run.lost_to] / sum(run.parts.values())
        text += f"; most is lost to {LOSSES[run.lost_to]} ({100 * share:.0f} % of an epoch)"
    fastest = min(runs, key=lambda run: run.seconds.value or 0.0)
    if fastest.workers == runs[-1].workers:
        return f"{text}."
    least = units.duration(fastest.seconds.value or 0.0)
    return f"{text}. Beyond {fastest.workers} workers ({least}) it takes longer."


def _paying(series: LargerRuns, target: float, end: str) -> int:
    """Return the most workers whose cost efficiency, or an end of its range, keeps the target."""
    kept = [run.workers for run in series.runs if (getattr(run.cost_efficiency, end) or 0.0) >= target]
    return max(kept, default=1)


def _larger_table(findings: Findings, larger: Sequence[LargerRuns], rows: int) -> Table:
    """Return predicted and measured times for some numbers of workers, also those up to which it pays."""
    decision, shown = findings.advice.decision, []
    for series in larger:
        pays = _paying(series, decision.target, "value")
        counts = downsample([run.workers for run in series.runs], rows, [pays])
        every = zip(series.runs, candidates_of(series), strict=True)
        shown += [(run, candidate) for run, candidate in every if run.workers in counts]
    runs, candidates = [run for run, _ in shown], [candidate for _, candidate in shown]
    measured = {key: price.seconds for key, price in decision.prices.items()}
    unit, length = time_unit([run.seconds.value or 0.0 for run in runs])
    times = [_cell(measured.get(candidate.key, NOTHING), length) for candidate in candidates]
    columns = [
        (Heading("Measured", unit, f"measured {unit}"), times),
        (Heading("Speed-up", "training time", "S"), [_cell(run.speedup) for run in runs]),
        (Heading("Global batch", brief="batch"), [f"{run.global_batch:,}" for run in runs]),
        (Heading("Lost most to", brief="lost to", numeric=False), [run.lost_to for run in runs]),
    ]
    return _table(findings, candidates, columns, tuple(_footnotes(larger, measured)), "larger", 5)


def _footnotes(larger: Sequence[LargerRuns], measured: Mapping[Key, Estimate]) -> Iterator[str]:
    inside = [
        run.seconds.low <= seconds <= run.seconds.high
        for series in larger
        for run in series.runs
        if run.workers > 1
        and (seconds := measured.get(series.key.on(run.workers), NOTHING).value) is not None
        if run.seconds.low is not None and run.seconds.high is not None
    ]
    if inside:
        yield f"{sum(inside)} of {len(inside)} times measured with several workers lie in their ranges."
    idle = {
        (series.training_samples, run.workers)
        for series in larger
        for run in series.runs
        if run.global_batch > series.training_samples
    }
    if idle:
        samples, workers = min(idle)
        yield (
            f"From {workers} workers on the global batch is larger than the training set of {samples:,}"
            " samples: an epoch is one step, and workers stay idle."
        )


def _table(
    findings: Findings,
    rows: Sequence[Candidate],
    more: Sequence[tuple[Heading, list[str]]],
    footnotes: tuple[str, ...] = (),
    name: str = "",
    essential: int = 0,
) -> Table:
    """Return a table of workers, time, cost and cost efficiency of candidates, with the columns in `more`."""
    unit, length = time_unit([row.duration for row in rows])
    bill = findings.advice.decision.bill
    columns = [
        (Heading("Strategy", brief="strategy", numeric=False), [row.key.series_label for row in rows]),
        (Heading("Workers", brief="n"), [str(row.key.workers) for row in rows]),
        (Heading("Time to train", unit, f"time {unit}"), [_cell(row.seconds, length) for row in rows]),
        (Heading("Cost", f"{bill}-hours", "cost h"), [_cell(row.cost) for row in rows]),
        (Heading("Cost efficiency", "", "cost eff."), [_cell(row.efficiency) for row in rows]),
        *more,
    ]
    cells = tuple(zip(*(cells for _, cells in columns), strict=True))
    headings = tuple(heading for heading, _ in columns)
    return Table(headings, cells, footnotes=footnotes, name=name, essential=essential)


def _cell(estimate: Estimate, length: float = 1.0) -> str:
    if estimate.value is None:
        return ""
    return with_interval(estimate.scaled(1 / length), decimals([estimate.value / length]))
