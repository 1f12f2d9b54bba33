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
from scalestudy.analysis.scaling_model import REACH, Model
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.features.advise.larger_runs import LargerRuns


@dataclass(frozen=True)
class Goal:
    """The goal of a request: the fastest row with the target cost efficiency, or the cheapest in a deadline.

    Attributes:
        deadline: Seconds from start to result; None for the target cost efficiency.
        most: Maximum number of workers. If None, `REACH` times the largest measured number.
    """

    deadline: float | None = None
    most: int | None = None


@dataclass(frozen=True)
class Candidate:
    """A strategy with a number of workers, to be judged by a goal.

    Attributes:
        kind: Whether its time was measured, or how it was predicted.
        seconds: Time from start to result.
        cost: Unit-hours of one training.
    """

    key: Key
    kind: Literal["measured", "interpolated", "extrapolated", "from one worker"]
    seconds: Estimate
    cost: Estimate
    efficiency: Estimate

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
        predicted: Without a deadline, the fastest candidate that was not measured, is faster than the
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
    larger: tuple[LargerRuns, ...] = ()
    reasons = list(missing)
    for series in expected:
        factor = _measured_factor(findings, series)
        if isinstance(factor, str):
            reasons.append(factor)
        else:
            larger += (_priced(findings, _calibrated(series, factor)),)
    predicted = [candidate for series in larger for candidate in _beyond(findings, series)]
    expected_series = {series.key.series for series in larger}
    for model in findings.models:
        beyond = model.series.key.series not in expected_series
        predicted += _predicted(findings, model, goal, reasons, beyond=beyond)
    if goal.deadline is None:
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


def _measured_factor(findings: Findings, series: LargerRuns) -> float | str:
    """Return measured over predicted time on the most workers measured, or why measurements refute it all.

    Rows that are faster than predicted leave the prediction as it is: it is known to be pessimistic.
    """
    prices = findings.advice.decision.prices
    factor, outside = 1.0, []
    for run in series.runs:
        price, predicted = prices.get(series.key.on(run.workers)), run.seconds
        if run.workers == 1 or price is None or price.basis != "wall" or not predicted.value:
            continue
        factor = 1.0 if price.duration < (predicted.low or 0.0) else price.duration / predicted.value
        if price.duration > (predicted.high or 0.0):
            outside.append(str(run.workers))
    if not outside:
        return factor
    return (
        f"nothing is predicted for {series.key.series_label} from one worker, since the times measured on"
        f" {' and '.join(outside)} workers are longer than the predicted ranges"
    )


def _calibrated(series: LargerRuns, factor: float) -> LargerRuns:
    """Return predictions whose times of several workers are multiplied by a factor."""
    runs = tuple(
        run
        if run.workers == 1
        else replace(
            run,
            seconds=run.seconds.scaled(factor),
            training_seconds=run.training_seconds.scaled(factor),
            times_faster=run.times_faster.scaled(1 / factor),
            speedup=run.speedup.scaled(1 / factor),
        )
        for run in series.runs
    )
    return replace(series, runs=runs)


def candidates_of(series: LargerRuns) -> list[Candidate]:
    """Return larger runs as candidates."""
    return [
        Candidate(series.key.on(run.workers), "from one worker", run.seconds, run.cost, run.cost_efficiency)
        for run in series.runs
    ]


def _measured(findings: Findings) -> list[Candidate]:
    """Return the rows that the decision does not refuse, with their times from start to result."""
    decision, candidates = findings.advice.decision, []
    for row in findings.rows:
        price = decision.prices.get(row.key)
        if price is None or row.key not in decision.sound:
            continue
        # Rows of unequal work are compared by the time of a sample, but a deadline is for the whole time.
        seconds = row.wall_seconds if price.basis == "rate" else price.seconds
        if seconds.value is None:
            continue
        cost = seconds.scaled(price.units / 3600)
        candidates.append(Candidate(row.key, "measured", seconds, cost, price.efficiency))
    return candidates


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
        number = "1 node was" if nodes == 1 else f"{nodes or 'an unknown number of'} nodes were"
        reasons.append(
            f"Nothing is predicted for {model.series.key.series_label} above {max(most, largest)} workers, "
            f'since {number} measured: --network "100Gbit,2us" predicts the exchange between nodes'
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
    decision = findings.advice.decision
    worse = [
        row.workers for row in decision.verdicts if row not in decision.sound and row.series == key.series
    ]
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
