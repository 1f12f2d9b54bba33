"""What `scalestudy advise` says, as a document and as JSON."""

import json
from typing import Any

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.statistics import Estimate
from scalestudy.features.advise.goals import Answer, Candidate
from scalestudy.report.document import Block, Document, Heading, Items, Paragraph, Table
from scalestudy.report.format import decimals, time_unit, with_interval
from scalestudy.util import units

PREDICTED = (
    "Predicted times are by the scaling model of each strategy, with 95 % prediction intervals of one run,"
    " and take what a run spends beside training at the counts next to it. Predicted counts have no quality."
)


def advise_document(findings: Findings, found: Answer) -> Document:
    """The answer, what it rests on, and what would settle it."""
    advice, goal = findings.advice, found.goal
    blocks: list[Block] = [Paragraph(headline(findings, found))]
    shown = [each for each in (found.best, *found.others, found.predicted) if each]
    if goal.aim == "efficiency":
        said = (advice.cost, *advice.sentences)
        blocks.append(Items(tuple(sentence for sentence in said if sentence)))
        if advice.open_questions:
            blocks += [Paragraph("Not settled:"), Items(advice.open_questions)]
    if shown:
        blocks.append(_table(findings, shown))
    if any(each.kind != "measured" for each in shown):
        blocks.append(Paragraph(PREDICTED))
    if found.reasons:
        blocks.append(Items(tuple(f"{reason[0].upper()}{reason[1:]}." for reason in found.reasons)))
    return Document(f"{findings.name}: what to ask for", tuple(blocks))


def advise_json(findings: Findings, found: Answer) -> str:
    """The same for programs: seconds, unit-hours, joules."""
    decision = findings.advice.decision
    record: dict[str, Any] = {
        "schema_version": 1,
        "study": findings.name,
        "goal": {"aim": found.goal.aim, "deadline_seconds": found.goal.deadline or None},
        "cost_unit": f"{decision.bill}-hours",
        "cost_efficiency_target": decision.target,
        "kind": decision.kind,
        "provisional": list(decision.provisional),
        "sure": found.sure,
        "best": _record(found.best) if found.best else None,
        "others": [_record(each) for each in found.others],
        "predicted": _record(found.predicted) if found.predicted else None,
        "reasons": list(found.reasons),
        "open_questions": list(findings.advice.open_questions),
    }
    return json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def headline(findings: Findings, found: Answer) -> str:
    """What to ask for, in a sentence or two."""
    goal, best = found.goal, found.best
    if goal.aim == "efficiency":
        text = findings.advice.headline
        if found.predicted:
            told = with_interval(found.predicted.efficiency, 2)
            text += (
                f" By its scaling model {found.predicted.key.label} would keep {told}: measure it before you"
                " ask for it."
            )
        return text
    if best is None:
        if goal.aim == "energy":
            return f"No row is known to need the least energy: {'; '.join(found.reasons)}."
        return f"No count is done in {units.duration(goal.deadline)}."
    if goal.aim == "energy":
        whose = {"gpus": "GPUs", "cpus": "processors", "gpus + cpus": "GPUs and processors"}[
            best.energy_of or "gpus"
        ]
        return (
            f"Ask for {best.key.label}: the least energy of a training, {(best.joules or 0) / 3600:.3g} Wh of"
            f" its {whose} only, without the rest of the node."
        )
    sure = "" if found.sure else "Provisionally, ask" if best.kind == "measured" else "As predicted, ask"
    return (
        f"{sure or 'Ask'} for {best.key.label}: the least cost of a training that is done in"
        f" {units.duration(goal.deadline)}."
    )


def _table(findings: Findings, shown: list[Candidate]) -> Table:
    unit, length = time_unit([each.seconds.value or 0.0 for each in shown])
    times = [each.seconds.scaled(1 / length) for each in shown]
    digits = decimals([time.value or 0.0 for time in times])
    costs = decimals([each.cost.value or 0.0 for each in shown])
    energy = any(each.joules is not None for each in shown)
    rows = tuple(
        (
            each.key.strategy + (f" ({each.key.details})" if each.key.swept else ""),
            str(each.key.workers),
            with_interval(time, digits),
            with_interval(each.cost, costs),
            with_interval(each.efficiency, 2),
            *([f"{each.joules / 3600:.3g}" if each.joules else ""] if energy else []),
            each.kind,
        )
        for each, time in zip(shown, times, strict=True)
    )
    headings = (
        Heading("Strategy", numeric=False),
        Heading("Workers", brief="n"),
        Heading("Time to train", unit, f"time {unit}"),
        Heading("Cost", f"{findings.advice.decision.bill}-hours", "cost h"),
        Heading("Cost efficiency", "", "cost eff."),
        *([Heading("Energy", "Wh", "Wh")] if energy else []),
        Heading("Count", numeric=False),
    )
    return Table(headings, rows, name="advised")


def _record(each: Candidate) -> dict[str, Any]:
    return {
        "strategy": each.key.strategy,
        "swept": each.key.swept,
        "workers": each.key.workers,
        "kind": each.kind,
        "seconds": _ends(each.seconds),
        "cost": _ends(each.cost),
        "cost_efficiency": _ends(each.efficiency),
        "joules": each.joules,
        "energy_of": each.energy_of,
    }


def _ends(found: Estimate) -> dict[str, float | None]:
    return {"value": found.value, "low": found.low, "high": found.high}
