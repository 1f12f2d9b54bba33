"""`scalestudy advise`: the measured row that best meets a goal, as a document and as JSON.

Without a deadline, this is the report's decision.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.planned_training import time_parts
from scalestudy.analysis.runs import Key
from scalestudy.report.document import Block, Document, Heading, Items, Paragraph, Table
from scalestudy.report.number_format import (
    cost_unit,
    decimals,
    time_unit,
    with_interval,
)
from scalestudy.report.results import results_table
from scalestudy.util import units

DOUBLINGS = 3
"""How many doublings of the workers beyond the measured ones are estimated for a deadline."""


@dataclass(frozen=True)
class Goal:
    """The goal of a request: the fastest row with the target cost efficiency, or the cheapest in a deadline.

    Attributes:
        deadline: Seconds from start to result; None for the target cost efficiency.
        most: Maximum number of workers within the deadline; None for any.
    """

    deadline: float | None = None
    most: int | None = None


@dataclass(frozen=True)
class Candidate:
    """A measured row, to be judged by a goal.

    Attributes:
        seconds: Time from start to result.
        cost: Unit-hours of one training.
    """

    key: Key
    seconds: Estimate
    cost: Estimate
    efficiency: Estimate


@dataclass(frozen=True)
class GoalAnswer:
    """The rows that best meet a goal.

    Attributes:
        best: Best row; None if none meets the goal.
        sure: Whether its whole interval meets the goal.
        others: Best rows of the other strategies within the deadline, in the same order.
    """

    goal: Goal
    best: Candidate | None
    sure: bool = False
    others: tuple[Candidate, ...] = ()


def answer(findings: Findings, goal: Goal) -> GoalAnswer:
    """Return the rows that best meet a goal."""
    decision = findings.advice.decision
    measured = _measured(findings)
    if goal.deadline is None:
        for candidate in measured:
            if candidate.key == decision.choice:
                return GoalAnswer(goal, candidate, not decision.provisional)
        return GoalAnswer(goal, None)
    within = []
    for candidate in _with_at_most(goal.most, measured):
        if (candidate.seconds.value or 0.0) <= goal.deadline:
            within.append(candidate)
    # Of two rows at one price, the faster one.
    within.sort(key=lambda row: (row.cost.value or 0.0, row.seconds.value or 0.0))
    # The first of each series is its cheapest, as the rows are sorted.
    cheapest: dict[tuple[str, str], Candidate] = {}
    for candidate in within:
        cheapest.setdefault(candidate.key.series, candidate)
    if not cheapest:
        return GoalAnswer(goal, None)
    best, *others = cheapest.values()
    latest = best.seconds.high
    sure = latest is not None and latest <= goal.deadline
    return GoalAnswer(goal, best, sure, tuple(others))


def _with_at_most(most: int | None, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the rows with at most this number of workers; all of them if it is None."""
    if most is None:
        return list(candidates)
    return [candidate for candidate in candidates if candidate.key.workers <= most]


def _measured(findings: Findings) -> list[Candidate]:
    """Return the rows that the decision does not refuse, with their times from start to result."""
    decision = findings.advice.decision
    candidates = []
    for row in findings.rows:
        price = decision.prices.get(row.key)
        # No goal makes up for a lost quality: what the decision refuses is not advised for a deadline either.
        if price is None or row.key not in decision.sound:
            continue
        seconds = price.seconds
        # Rows of unequal work are compared by the time of a sample, but a deadline is for the whole time.
        if price.basis == "rate":
            seconds = row.wall_seconds
        if seconds.value is not None:
            cost = seconds.scaled(price.units / 3600)
            candidates.append(Candidate(row.key, seconds, cost, price.efficiency))
    return candidates


def advise_document(findings: Findings, answer: GoalAnswer) -> Document:
    """Return the answer; without a deadline, also what it is based on and the open questions."""
    advice = findings.advice
    blocks: list[Block] = []
    if findings.readings:
        blocks.append(Items(findings.readings))
    if answer.best:
        blocks.append(_table(findings, [answer.best, *answer.others]))
    blocks.append(Paragraph(headline(findings, answer)))
    if answer.goal.deadline is None:
        if advice.cost:
            blocks.append(Paragraph(advice.cost))
        if advice.sentences:
            blocks.append(Items(advice.sentences))
        if advice.open_questions:
            blocks += [Paragraph("Not settled:"), Items(advice.open_questions)]
    return Document(f"{findings.name}: what to ask for", tuple(blocks))


def advise_json(findings: Findings, answer: GoalAnswer) -> str:
    """Return the answer for programs, in seconds and unit-hours."""
    decision = findings.advice.decision
    deadline = answer.goal.deadline
    aim = "efficiency"
    if deadline:
        aim = "deadline"
    best = None
    if answer.best:
        best = _record(answer.best)
    record: dict[str, Any] = {
        "schema_version": 1,
        "study": findings.name,
        "goal": {"aim": aim, "deadline_seconds": deadline},
        "cost_unit": f"{decision.bill}-hours",
        "cost_efficiency_target": decision.target,
        "kind": decision.kind,
        "provisional": list(decision.provisional),
        "sure": answer.sure,
        "best": best,
        "others": [_record(candidate) for candidate in answer.others],
        "open_questions": list(findings.advice.open_questions),
        "readings": list(findings.readings),
    }
    # `NaN` is no JSON, and many programs refuse it: what is unknown is null.
    text = json.dumps(
        record,
        indent=2,
        ensure_ascii=False,
        allow_nan=False,
    )
    return f"{text}\n"


def _record(row: Candidate) -> dict[str, Any]:
    return {
        "strategy": row.key.strategy,
        "swept": row.key.swept,
        "workers": row.key.workers,
        "seconds": asdict(row.seconds),
        "cost": asdict(row.cost),
        "cost_efficiency": asdict(row.efficiency),
    }


def headline(findings: Findings, answer: GoalAnswer) -> str:
    """Return the recommendation in one or two sentences."""
    advised = findings.advice.headline
    if answer.goal.deadline is None:
        return advised
    hours = answer.goal.deadline / 3600
    if hours >= 1 and hours.is_integer():
        done = f"{hours:.0f} h"
    else:
        done = units.duration(3600 * hours)
    if answer.best is not None:
        ask = "Provisionally, ask"
        if answer.sure:
            ask = "Ask"
        return f"{ask} for {answer.best.key.label}: the cheapest training that finishes in {done}."
    # Where nothing was learned, that is the answer, and not the time.
    verdicts = findings.advice.decision.verdicts.values()
    if all(verdict.seems_worse for verdict in verdicts):
        return f"No row is advised for {done}: {advised}"
    if _only_rates(findings):
        return f"No row states the time of a whole training, so none is known to finish in {done}."
    sentences = [f"No row of sufficient quality is known to finish in {done}."]
    sentences += _fastest_row(findings, answer.goal)
    sentences += _estimates(findings, answer.goal)
    return " ".join(sentences)


def _only_rates(findings: Findings) -> bool:
    """Whether rows were timed, but no time of a whole training is known."""
    for row in findings.rows:
        if row.wall_seconds.value or row.training_seconds.value:
            return False
    return _has_rates(findings)


def _has_rates(findings: Findings) -> bool:
    """Whether rows of unequal work are compared by the time of a sample."""
    prices = findings.advice.decision.prices.values()
    return any(price.basis == "rate" for price in prices)


def _fastest_row(findings: Findings, goal: Goal) -> list[str]:
    """The fastest measured row, in a sentence, for a deadline that none meets."""
    measured = _with_at_most(goal.most, _measured(findings))
    if not measured:
        return []
    fastest = min(measured, key=lambda row: row.seconds.value or 0.0)
    time = units.duration(fastest.seconds.value or 0.0)
    return [f"The fastest is {fastest.key.label}, {time}."]


def _estimates(findings: Findings, goal: Goal) -> list[str]:
    """What the scaling model estimates for more workers than were measured, marked as an estimate."""
    measured = _measured(findings)
    if not measured or goal.deadline is None:
        return []
    fastest = min(measured, key=lambda row: row.seconds.value or 0.0)
    model = None
    for each in findings.models:
        if each.series.key.series == fastest.key.series:
            model = each
            break
    if model is None or model.fit is None:
        return []
    # By the ratio of two predictions, so that the estimates begin at the measured time.
    measured_speed = model.predict(fastest.key.workers).speedup.value
    estimates = []
    for doubling in range(1, DOUBLINGS + 1):
        workers = fastest.key.workers * 2**doubling
        speed = model.predict(workers).speedup.value
        if not measured_speed or not speed:
            break
        if goal.most is not None and workers > goal.most:
            break
        seconds = _with_shorter_steps(findings, fastest, measured_speed / speed)
        estimates.append(f"{workers} workers {units.duration(seconds)}")
        if seconds <= goal.deadline:
            break
    if not estimates:
        return []
    return [f"Estimated by the scaling model, not measured: {', '.join(estimates)}."]


def _with_shorter_steps(findings: Findings, row: Candidate, share: float) -> float:
    """Seconds of a row's training if its steps took this share of their time.

    Start-up and evaluations do not get shorter with more workers, as far as a run's records tell them apart.
    """
    runs = findings.measures.groups[row.key]
    steps_of_epochs = []
    for run in runs:
        part = time_parts(run)
        if part is not None:
            steps_of_epochs.append(part.steps)
    whole = row.seconds.value or 0.0
    if not steps_of_epochs:
        return whole * share
    # `part.steps` is of one epoch.
    epochs = findings.criteria.planned.epochs or runs[0].result.epochs or 1
    steps = epochs * sum(steps_of_epochs) / len(steps_of_epochs)
    return whole - min(whole, steps) * (1 - share)


def _table(findings: Findings, rows: Sequence[Candidate]) -> Table:
    """Return these rows as the report shows them; where it shows rates, with the times of whole trainings."""
    if _has_rates(findings):
        return _table_of_times(findings, rows)
    keys = [row.key for row in findings.rows]
    advised = [keys.index(row.key) for row in rows]
    places = sorted(advised)
    table = results_table(findings, brief=True).only(places)
    return replace(
        table,
        chosen=places.index(advised[0]),
        gaps=(),
        name="advised",
    )


def _table_of_times(findings: Findings, rows: Sequence[Candidate]) -> Table:
    unit, length = time_unit([row.seconds.value or 0.0 for row in rows])
    billed, hours = cost_unit([row.cost.value for row in rows])
    bill = findings.advice.decision.bill
    headings = (
        Heading("Strategy", brief="strategy", numeric=False),
        Heading("Workers", brief="n"),
        Heading("Time to train", unit, f"time {unit}"),
        Heading("Cost", f"{bill}-{billed}", f"cost {billed}"),
        Heading("Cost efficiency", "", "cost eff."),
    )
    cells = []
    for row in rows:
        time = _cell(row.seconds.scaled(1 / length))
        cost = _cell(row.cost.scaled(1 / hours))
        workers = str(row.key.workers)
        label = row.key.series_label
        cells.append((label, workers, time, cost, _cell(row.efficiency)))
    return Table(headings, tuple(cells), name="advised")


def _cell(estimate: Estimate) -> str:
    if estimate.value is None:
        return ""
    return with_interval(estimate, decimals([estimate.value]))
