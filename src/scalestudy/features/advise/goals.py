"""The row, measured or predicted, that reaches a goal best.

Without a deadline or energy the answer is the decision of the report, which rests on measured rows alone;
what the scaling models predict of other counts is said beside it. A predicted count takes the training time
of its model and the time beside training of the counts next to it, never runs on more nodes than were
measured, and has no quality: counts from which on quality seems worse are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import fmean
from typing import Literal

from scalestudy.analysis.decision import Price
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key
from scalestudy.analysis.scaling.model import REACH, Model
from scalestudy.analysis.statistics import NOTHING, Estimate

Aim = Literal["efficiency", "deadline", "energy"]
Kind = Literal["measured", "interpolated", "extrapolated"]


@dataclass(frozen=True)
class Goal:
    """What is asked for.

    Attributes:
        aim: The fastest row at a cost efficiency; the least cost within a deadline; the least energy.
        deadline: Seconds from start to result.
        most: Most workers to think of; `REACH` times the largest count measured when None.
    """

    aim: Aim = "efficiency"
    deadline: float = 0.0
    most: int | None = None


@dataclass(frozen=True)
class Candidate:
    """A count of one strategy, held against a goal.

    Attributes:
        key: Its row, whether measured or not.
        kind: Whether its time was measured or predicted.
        seconds: From start to result.
        cost: Unit-hours of one training.
        efficiency: Cost efficiency.
        joules: Energy of one training; None where it was not recorded.
        energy_of: What that is of: "gpus", "cpus" or "gpus + cpus"; never the rest of the node.
    """

    key: Key
    kind: Kind
    seconds: Estimate
    cost: Estimate
    efficiency: Estimate = NOTHING
    joules: float | None = None
    energy_of: str | None = None


@dataclass(frozen=True)
class Answer:
    """What reaches a goal best.

    Attributes:
        goal: The goal.
        best: The candidate; None where none reaches it.
        sure: Whether its whole interval does so.
        others: The other strategies' best, in the same order.
        predicted: Of the aim for efficiency: the fastest count that was not measured, is faster than the
            choice, and keeps the target by its scaling model; None where there is none.
        reasons: Why series have no candidate, or none beyond a number of nodes.
    """

    goal: Goal
    best: Candidate | None
    sure: bool = False
    others: tuple[Candidate, ...] = ()
    predicted: Candidate | None = None
    reasons: tuple[str, ...] = ()


def answer(findings: Findings, goal: Goal) -> Answer:
    """The best row for a goal."""
    decision = findings.advice.decision
    measured = [_measured(findings, price) for price in _sound(findings)]
    if goal.aim == "energy":
        return _least_energy(measured, goal)
    reasons: list[str] = []
    predicted = [each for model in findings.models for each in _predicted(findings, model, goal, reasons)]
    if goal.aim == "efficiency":
        best = next((each for each in measured if each.key == decision.choice), None)
        limit = best.seconds.value if best else None
        keep = [each for each in predicted if (each.efficiency.value or 0.0) >= decision.target]
        faster = [each for each in keep if limit is None or _seconds(each) < limit]
        return Answer(
            goal,
            best,
            best is not None and not decision.provisional,
            predicted=min(faster, key=_seconds, default=None),
            reasons=tuple(reasons),
        )
    within = [each for each in [*measured, *predicted] if _seconds(each) <= goal.deadline]
    by_strategy: dict[tuple[str, str], Candidate] = {}
    for each in sorted(
        within, key=lambda each: (each.cost.value or 0.0, each.kind != "measured", _seconds(each))
    ):
        by_strategy.setdefault((each.key.strategy, each.key.variant), each)
    found = list(by_strategy.values())
    if not found:
        return Answer(goal, None, reasons=tuple(reasons))
    best = found[0]
    sure = best.seconds.high is not None and best.seconds.high <= goal.deadline
    return Answer(goal, best, sure, tuple(found[1:]), reasons=tuple(reasons))


def _least_energy(measured: Sequence[Candidate], goal: Goal) -> Answer:
    known = [each for each in measured if each.joules is not None]
    kinds = {each.energy_of for each in known}
    if len(kinds) != 1:
        why = "no run recorded its energy" if not known else "some rows counted GPUs and others processors"
        return Answer(goal, None, reasons=(why,))
    return Answer(goal, min(known, key=lambda each: each.joules or 0.0))


def _sound(findings: Findings) -> Iterator[Price]:
    """Prices of rows whose quality does not seem worse and whose cost is known."""
    decision = findings.advice.decision
    verdicts = decision.verdicts or {}
    for key, price in (decision.prices or {}).items():
        if not verdicts[key].seems_worse and price.cost.value is not None:
            yield price


def _measured(findings: Findings, price: Price) -> Candidate:
    row = next(row for row in findings.rows if row.key == price.key)
    hours = row.costs.watt_hours
    return Candidate(
        price.key,
        "measured",
        price.seconds,
        price.cost,
        price.efficiency,
        None if hours is None else 3600 * hours,
        row.costs.energy_of,
    )


def _predicted(findings: Findings, model: Model, goal: Goal, reasons: list[str]) -> Iterator[Candidate]:
    """Counts of a series that were not measured, by its scaling model."""
    name = model.series.key.strategy + (f" ({model.series.key.details})" if model.series.key.swept else "")
    decision = findings.advice.decision
    if (
        decision.reference is None
        or not decision.prices
        or decision.prices[decision.reference].cost.value is None
    ):
        return
    if model.fit is None:
        reasons.append(f"{name}: nothing is predicted, since {model.reason}")
        return
    if model.series.of != "training" or model.series.work == "weak":
        reasons.append(f"{name}: nothing is predicted, since the time of one same training is not known")
        return
    if model.lack_of_fit:
        reasons.append(f"{name}: nothing is predicted, since its scaling model misses something")
        return
    first = decision.prices[decision.reference].cost.value or 0.0
    for workers in _counts(findings, model, goal, name, reasons):
        seconds = model.predict(workers).seconds
        beside = _beside_training(findings, model, workers)
        if seconds.value is None or beside is None:
            continue
        wall = Estimate(
            *(None if end is None else end + beside for end in (seconds.value, seconds.low, seconds.high))
        )
        cost = wall.scaled(_units(findings, model, workers) / 3600)
        kind = model.predict(workers).kind
        ends = (cost.value, cost.high, cost.low)
        efficiency = Estimate(*(first / end if end else None for end in ends))
        key = model.series.key.with_(model.series.key.strategy, workers)
        yield Candidate(key, kind, wall, cost, efficiency)


def _counts(findings: Findings, model: Model, goal: Goal, name: str, reasons: list[str]) -> list[int]:
    """Counts to predict: up to the nodes measured, over several nodes only what fills them."""
    series, nodes, each = model.series, model.nodes_measured, model.workers_per_node
    largest = series.different[-1]
    wanted = goal.most or REACH * largest
    most = min(wanted, nodes * each) if nodes and each else min(wanted, largest)
    if most < wanted:
        known = f"{nodes} node{'s' if nodes != 1 else ''}" if nodes else "an unknown number of nodes"
        reasons.append(
            f"{name}: nothing is predicted above {max(most, largest)} workers, since {known} were measured:"
            " --network predicts the exchange between nodes"
        )
    verdicts = findings.advice.decision.verdicts or {}
    worse = [
        key.workers
        for key, verdict in verdicts.items()
        if (key.strategy, key.variant) == (series.key.strategy, series.key.variant) and verdict.seems_worse
    ]
    below = min(worse, default=most + 1)
    return [
        count
        for count in range(series.different[0], min(most, below - 1) + 1)
        if count not in series.different and (not each or count <= each or count % each == 0)
    ]


def _units(findings: Findings, model: Model, workers: int) -> float:
    """Units that are billed on a count, by those of the measured ones."""
    bill, each = findings.advice.decision.bill, model.workers_per_node
    if bill == "node":
        return float(ceil(workers / each)) if each else float(workers)
    prices = findings.advice.decision.prices or {}
    known = prices.get(model.series.key)
    return workers * (known.units / known.key.workers if known else 1.0)


def _beside_training(findings: Findings, model: Model, workers: int) -> float | None:
    """Mean seconds of a run beside training, the larger of the measured counts' on either side."""
    means: dict[int, float] = {}
    for count in model.series.different:
        runs = findings.measures.groups[model.series.key.with_(model.series.key.strategy, count)]
        spent = [
            max(0.0, run.result.wall_seconds - run.result.training_seconds)
            for run in runs
            if run.result.wall_seconds is not None and run.result.training_seconds is not None
        ]
        means |= {count: fmean(spent)} if spent else {}
    near = [
        max((count for count in means if count <= workers), default=None),
        min((count for count in means if count >= workers), default=None),
    ]
    return max((means[count] for count in near if count is not None), default=0.0)


def _seconds(each: Candidate) -> float:
    return each.seconds.value or 0.0
