"""Find the measured or predicted row that best meets a goal.

For the aim "efficiency" this is the report's decision, which is based on measured rows only. A strategy's
scaling model predicts other numbers of workers, on at most as many nodes as were measured. If the network is
known, one-worker runs predict larger numbers. Numbers of workers at which quality seems worse are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import fmean
from typing import Literal

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key
from scalestudy.analysis.scaling.model import REACH, Model
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.features.advise.larger_runs import LargerRuns

Aim = Literal["efficiency", "deadline", "energy"]


@dataclass(frozen=True)
class Goal:
    """The goal of a request.

    Attributes:
        aim: The fastest row with the target cost efficiency, the cheapest in a deadline, or the least energy.
        deadline: Seconds from start to result.
        most: Maximum number of workers. If None, `REACH` times the largest measured number.
    """

    aim: Aim = "efficiency"
    deadline: float = 0.0
    most: int | None = None


@dataclass(frozen=True)
class Candidate:
    """A strategy with a number of workers, to be judged by a goal.

    Attributes:
        kind: Whether its time was measured, or how it was predicted.
        seconds: Time from start to result.
        cost: Unit-hours of one training.
        joules: Energy of one training; None if not recorded.
        energy_of: Devices included: "gpus", "cpus" or "gpus + cpus"; never the rest of the node.
    """

    key: Key
    kind: Literal["measured", "interpolated", "extrapolated", "from one worker"]
    seconds: Estimate
    cost: Estimate
    efficiency: Estimate
    joules: float | None = None
    energy_of: str | None = None

    @property
    def duration(self) -> float:
        """Seconds from start to result, which are known for every candidate."""
        return self.seconds.value or 0.0


@dataclass(frozen=True)
class GoalAnswer:
    """The candidates that best meet a goal.

    Attributes:
        best: Best candidate; None if none meets the goal.
        sure: Whether its whole interval meets the goal.
        others: Best candidates of the other strategies, in the same order.
        predicted: For the aim "efficiency", the fastest candidate that was not measured, is faster than the
            choice, and is predicted to keep the target; None if there is none.
        reasons: Why series have no candidate, or none beyond a number of nodes.
        larger: Predicted times and costs of larger runs, if the network is known.
    """

    goal: Goal
    best: Candidate | None
    sure: bool = False
    others: tuple[Candidate, ...] = ()
    predicted: Candidate | None = None
    reasons: tuple[str, ...] = ()
    larger: tuple[LargerRuns, ...] = ()


def answer(
    findings: Findings, goal: Goal, expected: Sequence[LargerRuns] = (), missing: Sequence[str] = ()
) -> GoalAnswer:
    """Return the best candidates for a goal, given predictions of larger runs and why some are `missing`."""
    decision = findings.advice.decision
    measured = _measured(findings)
    if goal.aim == "energy":
        return _least_energy(measured, goal)
    larger = tuple(_priced(findings, series) for series in expected)
    reasons = list(missing)
    predicted = [candidate for series in larger for candidate in _beyond(findings, series)]
    expected_series = {series.key.series for series in larger}
    for model in findings.models:
        beyond = model.series.key.series not in expected_series
        predicted += _predicted(findings, model, goal, reasons, beyond=beyond)
    if goal.aim == "efficiency":
        best = next((candidate for candidate in measured if candidate.key == decision.choice), None)
        faster = [
            candidate
            for candidate in predicted
            if (candidate.efficiency.value or 0.0) >= decision.target
            and (best is None or candidate.duration < best.duration)
        ]
        sure = best is not None and not decision.provisional
        fastest = min(faster, key=lambda candidate: candidate.duration, default=None)
        return GoalAnswer(goal, best, sure, (), fastest, tuple(reasons), larger)
    within = [candidate for candidate in [*measured, *predicted] if candidate.duration <= goal.deadline]
    within.sort(key=lambda row: (row.cost.value or 0.0, row.kind != "measured", row.duration))
    cheapest: dict[tuple[str, str], Candidate] = {}
    for candidate in within:
        cheapest.setdefault(candidate.key.series, candidate)
    best, others = next(iter(cheapest.values()), None), tuple(cheapest.values())[1:]
    sure = best is not None and best.seconds.high is not None and best.seconds.high <= goal.deadline
    return GoalAnswer(goal, best, sure, others, None, tuple(reasons), larger)


def candidates_of(series: LargerRuns) -> list[Candidate]:
    """Return larger runs as candidates."""
    return [
        Candidate(series.key.on(run.workers), "from one worker", run.seconds, run.cost, run.cost_efficiency)
        for run in series.runs
    ]


def _least_energy(measured: Sequence[Candidate], goal: Goal) -> GoalAnswer:
    recorded = [candidate for candidate in measured if candidate.joules is not None]
    if len({candidate.energy_of for candidate in recorded}) != 1:
        why = "some rows counted GPUs and others processors" if recorded else "no run recorded its energy"
        return GoalAnswer(goal, None, reasons=(why,))
    return GoalAnswer(goal, min(recorded, key=lambda candidate: candidate.joules or 0.0))


def _measured(findings: Findings) -> list[Candidate]:
    """Return the rows whose quality does not seem worse and whose cost is known."""
    decision, costs = findings.advice.decision, {row.key: row.costs for row in findings.rows}
    return [
        Candidate(
            key, "measured", price.seconds, price.cost, price.efficiency,
            None if costs[key].watt_hours is None else 3600 * (costs[key].watt_hours or 0.0),
            costs[key].energy_of,
        )
        for key, price in decision.prices.items()
        if not decision.verdicts[key].seems_worse and price.cost.value is not None
    ]  # fmt: skip


def _priced(findings: Findings, series: LargerRuns) -> LargerRuns:
    """Return larger runs with their cost and cost efficiency.

    The cost efficiency is that of the measured one-worker row, if there is one, times the share of it that a
    larger run keeps. Uncertainties that one worker and many share cancel in this ratio.
    """
    prices, reference = findings.advice.decision.prices, _reference_cost(findings)
    single = _units(findings, series.key, 1, series.per_node)
    one = (series.runs[0].seconds.value or 0.0) * single / 3600
    first = reference.value / one if reference and reference.value and one else None
    first = prices[series.key].efficiency.value if series.key in prices else first
    runs = []
    for run in series.runs:
        units = _units(findings, series.key, run.workers, series.per_node)
        efficiency = run.times_faster.scaled(first * single / units) if first else NOTHING
        runs.append(replace(run, cost=run.seconds.scaled(units / 3600), cost_efficiency=efficiency))
    return replace(series, runs=tuple(runs))


def _beyond(findings: Findings, series: LargerRuns) -> list[Candidate]:
    """Return runs with more workers than were measured, up to where quality seems worse."""
    counts = [row.workers for row in findings.rows if row.key.series == series.key.series]
    below = _worse_from(findings, series.key)
    return [
        candidate
        for candidate in candidates_of(series)
        if max(counts, default=1) < candidate.key.workers < (below or candidate.key.workers + 1)
    ]


def _predicted(
    findings: Findings, model: Model, goal: Goal, reasons: list[str], *, beyond: bool
) -> Iterator[Candidate]:
    """Predict unmeasured numbers of workers of a series; with `beyond`, also above the largest measured."""
    key, reference = model.series.key, _reference_cost(findings)
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
        reasons += [f"Nothing is predicted for {key.series_label}, since {why}"] if beyond else []
        return
    largest = model.series.different[-1]
    most = _most(model, goal, reasons) if beyond else min(goal.most or largest, largest)
    for workers in _counts(findings, model, most):
        prediction, beside = model.predict(workers), _beside_training(findings, model, workers)
        if prediction.seconds.value is not None:
            seconds = prediction.seconds.map(lambda end, beside=beside: end + beside)  # type: ignore[misc]
            cost = seconds.scaled(_units(findings, key, workers, model.workers_per_node) / 3600)
            efficiency = cost.inverse().scaled(reference.value or 0.0)
            if reference.low is not None:  # known from several runs
                efficiency = cost.inverse().times(reference)
            yield Candidate(key.on(workers), prediction.kind, seconds, cost, efficiency)


def _most(model: Model, goal: Goal, reasons: list[str]) -> int:
    """Return the largest number of workers to predict, on at most as many nodes as were measured."""
    nodes, per_node, largest = model.nodes_measured, model.workers_per_node, model.series.different[-1]
    wanted = goal.most or REACH * largest
    most = min(wanted, nodes * per_node) if nodes and per_node else min(wanted, largest)
    if most < wanted:
        number = f"{nodes} node{'s' if nodes != 1 else ''}" if nodes else "an unknown number of nodes"
        reasons.append(
            f"Nothing is predicted for {model.series.key.series_label} above {max(most, largest)} workers, "
            f'since {number} were measured: --network "100Gbit,2us" predicts the exchange between nodes'
        )
    return most


def _counts(findings: Findings, model: Model, most: int) -> list[int]:
    """Return the unmeasured numbers of workers; beyond one node, only multiples of full nodes."""
    measured, per_node = model.series.different, model.workers_per_node
    worse = _worse_from(findings, model.series.key)
    end = most if worse is None else min(most, worse - 1)
    return [
        count
        for count in range(measured[0], end + 1)
        if count not in measured and (not per_node or count <= per_node or count % per_node == 0)
    ]


def _worse_from(findings: Findings, key: Key) -> int | None:
    """Return the smallest number of workers of a series at which quality seems worse, or None."""
    verdicts = findings.advice.decision.verdicts
    worse = [row.workers for row in verdicts if verdicts[row].seems_worse and row.series == key.series]
    return min(worse, default=None)


def _reference_cost(findings: Findings) -> Estimate | None:
    decision = findings.advice.decision
    cost = decision.prices[decision.reference].cost if decision.reference else NOTHING
    return cost if cost.value else None


def _units(findings: Findings, key: Key, workers: int, per_node: int | None) -> float:
    """Return the units billed for a number of workers, based on those of measured rows."""
    decision = findings.advice.decision
    if decision.bill == "node":
        return float(ceil(workers / per_node)) if per_node else float(workers)
    price = decision.prices.get(key) or (decision.prices[decision.reference] if decision.reference else None)
    return workers * (price.units / price.key.workers if price else 1.0)


def _beside_training(findings: Findings, model: Model, workers: int) -> float:
    """Return a run's mean seconds outside training: the larger value of the nearest measured rows."""
    means: dict[int, float] = {}
    for count in model.series.different:
        spent = [
            max(0.0, run.result.wall_seconds - run.result.training_seconds)
            for run in findings.measures.groups[model.series.key.on(count)]
            if run.result.wall_seconds is not None and run.result.training_seconds is not None
        ]
        means |= {count: fmean(spent)} if spent else {}
    below = max((count for count in means if count <= workers), default=None)
    above = min((count for count in means if count >= workers), default=None)
    return max((means[count] for count in (below, above) if count is not None), default=0.0)
