"""The row, measured or predicted, that reaches a goal best.

Without a deadline or energy the answer is the decision of the report, which rests on measured rows alone;
what is predicted of other counts is said beside it. Two things predict them: the scaling model of a strategy,
between the counts that were measured and on as many nodes at most; and, where the network is known, runs of
one worker, beyond. Predicted counts have no quality: counts from which on quality seems worse are left out.
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
from scalestudy.features.advise.larger_runs import LargerRuns

Aim = Literal["efficiency", "deadline", "energy"]
Kind = Literal["measured", "interpolated", "extrapolated", "from one worker"]


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
        kind: Whether its time was measured, or by what it was predicted.
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
class Outlook:
    """Larger runs of a strategy, each with its time and cost."""

    series: LargerRuns
    candidates: tuple[Candidate, ...]
    """One for each of `series.runs`."""


@dataclass(frozen=True)
class GoalAnswer:
    """What reaches a goal best.

    Attributes:
        goal: The goal.
        best: The candidate; None where none reaches it.
        sure: Whether its whole interval does so.
        others: The other strategies' best, in the same order.
        predicted: Of the aim for efficiency: the fastest count that was not measured, is faster than the
            choice, and keeps the target as predicted; None where there is none.
        reasons: Why series have no candidate, or none beyond a number of nodes.
        outlooks: What larger runs are expected to take, where the network is known.
    """

    goal: Goal
    best: Candidate | None
    sure: bool = False
    others: tuple[Candidate, ...] = ()
    predicted: Candidate | None = None
    reasons: tuple[str, ...] = ()
    outlooks: tuple[Outlook, ...] = ()


def answer(
    findings: Findings, goal: Goal, expected: Sequence[LargerRuns] = (), missing: Sequence[str] = ()
) -> GoalAnswer:
    """The best row for a goal.

    Args:
        findings: The study.
        goal: What is asked for.
        expected: Larger runs, where the network is known.
        missing: Why none are expected of some strategies.
    """
    decision = findings.advice.decision
    outlooks = tuple(_outlook(findings, series) for series in expected)
    measured = [_measured(findings, price) for price in _sound(findings)]
    if goal.aim == "energy":
        return _least_energy(measured, goal)
    reasons = list(missing)
    predicted = [candidate for outlook in outlooks for candidate in _beyond(findings, outlook)]
    for model in findings.models:
        known = any(_same_series(outlook.series.key, model.series.key) for outlook in outlooks)
        predicted += _predicted(findings, model, goal, reasons, beyond=not known)
    if goal.aim == "efficiency":
        best = next((candidate for candidate in measured if candidate.key == decision.choice), None)
        faster = [
            candidate
            for candidate in predicted
            if (candidate.efficiency.value or 0.0) >= decision.target
            and (best is None or _seconds(candidate) < _seconds(best))
        ]
        sure = best is not None and not decision.provisional
        fastest = min(faster, key=_seconds, default=None)
        return GoalAnswer(goal, best, sure, (), fastest, tuple(reasons), outlooks)
    within = [candidate for candidate in [*measured, *predicted] if _seconds(candidate) <= goal.deadline]
    within.sort(
        key=lambda candidate: (
            candidate.cost.value or 0.0,
            candidate.kind != "measured",
            _seconds(candidate),
        )
    )
    cheapest: dict[tuple[str, str], Candidate] = {}
    for candidate in within:
        cheapest.setdefault((candidate.key.strategy, candidate.key.variant), candidate)
    best, *rest = cheapest.values() or [None]
    sure = best is not None and best.seconds.high is not None and best.seconds.high <= goal.deadline
    shown = tuple(candidate for candidate in rest if candidate)
    return GoalAnswer(goal, best, sure, shown, None, tuple(reasons), outlooks)


def _least_energy(measured: Sequence[Candidate], goal: Goal) -> GoalAnswer:
    known = [candidate for candidate in measured if candidate.joules is not None]
    if len({candidate.energy_of for candidate in known}) != 1:
        why = "no run recorded its energy" if not known else "some rows counted GPUs and others processors"
        return GoalAnswer(goal, None, reasons=(why,))
    return GoalAnswer(goal, min(known, key=lambda candidate: candidate.joules or 0.0))


def _sound(findings: Findings) -> Iterator[Price]:
    """Prices of rows whose quality does not seem worse and whose cost is known."""
    decision = findings.advice.decision
    verdicts = decision.verdicts or {}
    for key, price in (decision.prices or {}).items():
        if not verdicts[key].seems_worse and price.cost.value is not None:
            yield price


def _measured(findings: Findings, price: Price) -> Candidate:
    row = next(row for row in findings.rows if row.key == price.key)
    joules = None if row.costs.watt_hours is None else 3600 * row.costs.watt_hours
    return Candidate(
        price.key, "measured", price.seconds, price.cost, price.efficiency, joules, row.costs.energy_of
    )


def _outlook(findings: Findings, series: LargerRuns) -> Outlook:
    """Cost and cost efficiency of larger runs.

    Efficiency is that of the measured row of one worker, where there is one, times what larger runs keep of
    it: what is uncertain of one worker and of many alike falls out of that.
    """
    prices, reference = findings.advice.decision.prices or {}, _reference_cost(findings)
    single = _units(findings, series.key, 1, series.per_node)
    one = (series.runs[0].seconds.value or 0.0) * single / 3600
    kept = prices[series.key].efficiency.value if series.key in prices else reference and reference / one
    candidates = []
    for run in series.runs:
        key = series.key.with_(series.key.strategy, run.workers)
        units = _units(findings, series.key, run.workers, series.per_node)
        efficiency = run.times_faster.scaled(kept * single / units) if kept else NOTHING
        cost = run.seconds.scaled(units / 3600)
        candidates.append(Candidate(key, "from one worker", run.seconds, cost, efficiency))
    return Outlook(series, tuple(candidates))


def _beyond(findings: Findings, outlook: Outlook) -> list[Candidate]:
    """Larger runs than were measured of the series, before quality seems worse."""
    key = outlook.series.key
    largest = max((row.workers for row in findings.rows if _same_series(row.key, key)), default=1)
    below = _worse_from(findings, key)
    return [
        candidate
        for candidate in outlook.candidates
        if candidate.key.workers > largest and (below is None or candidate.key.workers < below)
    ]


def _predicted(
    findings: Findings, model: Model, goal: Goal, reasons: list[str], *, beyond: bool
) -> Iterator[Candidate]:
    """Counts of a series that were not measured, by its scaling model; `beyond`: the largest measured."""
    key = model.series.key
    name = key.strategy + (f" ({key.details})" if key.swept else "")
    reference = _reference_cost(findings)
    if reference is None:
        return
    why = ""
    if model.fit is None:
        why = model.reason
    elif model.series.of != "training" or model.series.work == "weak":
        why = "the time of one same training is not known"
    elif model.lack_of_fit:
        why = "its scaling model misses something"
    if why:
        reasons += [f"{name}: nothing is predicted, since {why}"] if beyond else []
        return
    largest = model.series.different[-1]
    most = _most(model, goal, name, reasons) if beyond else min(goal.most or largest, largest)
    for workers in _counts(findings, model, most):
        prediction, beside = model.predict(workers), _beside_training(findings, model, workers)
        seconds = prediction.seconds
        if seconds.value is None:
            continue
        ends = (None if end is None else end + beside for end in (seconds.value, seconds.low, seconds.high))
        wall = Estimate(*ends)
        cost = wall.scaled(_units(findings, key, workers, model.workers_per_node) / 3600)
        ratios = (reference / end if end else None for end in (cost.value, cost.high, cost.low))
        yield Candidate(key.with_(key.strategy, workers), prediction.kind, wall, cost, Estimate(*ratios))


def _most(model: Model, goal: Goal, name: str, reasons: list[str]) -> int:
    """The largest count to predict: on no more nodes than were measured."""
    nodes, per_node, largest = model.nodes_measured, model.workers_per_node, model.series.different[-1]
    wanted = goal.most or REACH * largest
    most = min(wanted, nodes * per_node) if nodes and per_node else min(wanted, largest)
    if most < wanted:
        known = f"{nodes} node{'s' if nodes != 1 else ''}" if nodes else "an unknown number of nodes"
        reasons.append(
            f"{name}: nothing is predicted above {max(most, largest)} workers, since {known} were measured:"
            ' --network "100Gbit,2us" predicts the exchange between nodes'
        )
    return most


def _counts(findings: Findings, model: Model, most: int) -> list[int]:
    """Counts that were not measured, over several nodes only what fills them."""
    measured, per_node = model.series.different, model.workers_per_node
    worse = _worse_from(findings, model.series.key)
    end = most if worse is None else min(most, worse - 1)
    return [
        count
        for count in range(measured[0], end + 1)
        if count not in measured and (not per_node or count <= per_node or count % per_node == 0)
    ]


def _worse_from(findings: Findings, key: Key) -> int | None:
    """The fewest workers of a series with which quality seems worse."""
    verdicts = findings.advice.decision.verdicts or {}
    worse = [
        row.workers for row, verdict in verdicts.items() if verdict.seems_worse and _same_series(row, key)
    ]
    return min(worse, default=None)


def _same_series(one: Key, other: Key) -> bool:
    return (one.strategy, one.variant) == (other.strategy, other.variant)


def _reference_cost(findings: Findings) -> float | None:
    """Cost of the row that others are held against."""
    decision = findings.advice.decision
    if decision.reference is None or not decision.prices:
        return None
    return decision.prices[decision.reference].cost.value


def _units(findings: Findings, key: Key, workers: int, per_node: int | None) -> float:
    """Units that are billed on a count, by those of the measured ones."""
    decision = findings.advice.decision
    if decision.bill == "node":
        return float(ceil(workers / per_node)) if per_node else float(workers)
    prices = decision.prices or {}
    price = prices.get(key) or (prices.get(decision.reference) if decision.reference else None)
    return workers * (price.units / price.key.workers if price else 1.0)


def _beside_training(findings: Findings, model: Model, workers: int) -> float:
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


def _seconds(candidate: Candidate) -> float:
    return candidate.seconds.value or 0.0
