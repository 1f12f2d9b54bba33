"""Find the measured or predicted row that best meets a goal.

For the aim "efficiency" this is the report's decision, which is based on measured rows only. If the network
is known, one-worker runs predict larger numbers of workers, up to those at which quality seems worse.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.features.advise.larger_runs import LargerRuns


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
    """A strategy with a number of workers, to be judged by a goal.

    Attributes:
        kind: Whether its time was measured, or how it was predicted.
        seconds: Time from start to result.
        cost: Unit-hours of one training.
    """

    key: Key
    kind: Literal["measured", "from one worker"]
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
        reasons: Why nothing is predicted for a series.
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
    factors = [_measure_factor(findings, series) for series in expected]
    reasons = (*missing, *(factor for factor in factors if isinstance(factor, str)))
    larger = tuple(
        _price(findings, series, factor)
        for series, factor in zip(expected, factors, strict=True)
        if not isinstance(factor, str)
    )
    measured = _measured(findings)
    predicted = [candidate for series in larger for candidate in _beyond(findings, series)]
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
        return GoalAnswer(goal, best, sure, (), fastest, reasons, larger)
    within = [
        candidate
        for candidate in [*measured, *predicted]
        if candidate.duration <= goal.deadline and (goal.most is None or candidate.key.workers <= goal.most)
    ]
    within.sort(key=lambda row: (row.cost.value or 0.0, row.kind != "measured", row.duration))
    cheapest: dict[tuple[str, str], Candidate] = {}
    for candidate in within:
        cheapest.setdefault(candidate.key.series, candidate)
    ordered = tuple(cheapest.values())
    best = ordered[0] if ordered else None
    sure = best is not None and best.seconds.high is not None and best.seconds.high <= goal.deadline
    return GoalAnswer(goal, best, sure, ordered[1:], None, reasons, larger)


def _measure_factor(findings: Findings, series: LargerRuns) -> float | str:
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


def _price(findings: Findings, series: LargerRuns, factor: float) -> LargerRuns:
    """Return larger runs with times multiplied by a factor, and with their cost and cost efficiency.

    The cost efficiency is that of the measured one-worker row, if there is one, times the share of it that a
    larger run keeps. Uncertainties that one worker and many share cancel in this ratio.
    """
    decision = findings.advice.decision
    reference = decision.prices[decision.reference].cost.value if decision.reference else None
    single = _units(findings, series.key, 1, series.per_node)
    one = (series.runs[0].seconds.value or 0.0) * single / 3600
    first = reference / one if reference and one else None
    first = decision.prices[series.key].efficiency.value if series.key in decision.prices else first
    runs = []
    for run in series.runs:
        longer = 1.0 if run.workers == 1 else factor
        units = _units(findings, series.key, run.workers, series.per_node)
        seconds, faster = run.seconds.scaled(longer), run.times_faster.scaled(1 / longer)
        runs.append(
            replace(
                run,
                seconds=seconds,
                training_seconds=run.training_seconds.scaled(longer),
                times_faster=faster,
                speedup=run.speedup.scaled(1 / longer),
                cost=seconds.scaled(units / 3600),
                cost_efficiency=faster.scaled(first * single / units) if first else NOTHING,
            )
        )
    return replace(series, runs=tuple(runs))


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
        if seconds.value is not None:
            cost = seconds.scaled(price.units / 3600)
            candidates.append(Candidate(row.key, "measured", seconds, cost, price.efficiency))
    return candidates


def _beyond(findings: Findings, series: LargerRuns) -> list[Candidate]:
    """Return runs with more workers than were measured, up to where quality seems worse."""
    decision, key = findings.advice.decision, series.key.series
    most = max((row.workers for row in findings.rows if row.key.series == key), default=1)
    worse = [row.workers for row in decision.verdicts if row.series == key and row not in decision.sound]
    return [
        candidate
        for candidate in candidates_of(series)
        if most < candidate.key.workers < min(worse, default=candidate.key.workers + 1)
    ]


def _units(findings: Findings, key: Key, workers: int, per_node: int) -> float:
    """Return the units billed for a number of workers, based on those of measured rows."""
    decision = findings.advice.decision
    if decision.bill == "node":
        return float(ceil(workers / per_node))
    price = decision.prices.get(key) or (decision.prices[decision.reference] if decision.reference else None)
    return workers * (price.units / price.key.workers if price else 1.0)
