"""How many workers to ask for: by efficiency, by cost and a deadline, or by energy.

Counts are every number of workers from the fewest measured up to `most`; where a strategy ran on several
nodes, and on one, above one full node those that fill nodes. No count is advised from which on quality seems
worse. Time is as measured, and of other counts by the series' scaling model (`Model`), with an interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scalestudy.analysis.findings import Findings
from scalestudy.analysis.runs import Key
from scalestudy.analysis.scaling.energy import Power, power_of
from scalestudy.analysis.scaling.model import REACH, Model, Prediction
from scalestudy.analysis.statistics import NOTHING, Estimate

Aim = Literal["efficiency", "deadline", "energy"]
MOST = 10_000
"""Counts that are looked through at most."""


@dataclass(frozen=True)
class Goal:
    """What is asked for.

    Attributes:
        aim: The most workers that keep an efficiency; the least cost within a deadline; the least energy.
        value: That efficiency, or the deadline in seconds.
        charge: What a worker-hour costs.
        most: Most workers to think of; `REACH` times the largest count measured when None.
    """

    aim: Aim
    value: float = 0.0
    charge: float = 1.0
    most: int | None = None


@dataclass(frozen=True)
class Advised:
    """A count of one strategy for a goal.

    Attributes:
        key: Its row, whether measured or not.
        prediction: Time and speed-up there.
        overhead: Seconds of a job beside training.
        cost: Of one job, in worker-hours times the charge; empty where the time of one is not known.
        joules: Energy of one training; None where none was asked for or recorded.
        sure: The count that keeps the goal with 97.5 %, where that is another one; None for none.
        seen: Whether the count was measured.
    """

    key: Key
    prediction: Prediction
    overhead: float
    cost: Estimate
    joules: float | None = None
    sure: int | None = None
    seen: bool = True


@dataclass(frozen=True)
class Advisable:
    """All strategies held against a goal: the best first, and why others have no count."""

    goal: Goal
    found: tuple[Advised, ...]
    reasons: tuple[str, ...]


def recommend(findings: Findings, goal: Goal) -> Advisable:
    """The count of each strategy that reaches a goal best."""
    found, reasons = [], []
    for model in findings.models:
        advised = _of_series(model, findings, goal)
        if isinstance(advised, str):
            reasons.append(f"{_name(model.series.key)}: {advised}")
        else:
            found.append(advised)
    return Advisable(goal, tuple(sorted(found, key=lambda each: _rank(each, goal))), tuple(reasons))


def _of_series(model: Model, findings: Findings, goal: Goal) -> Advised | str:
    counts = _candidates(model, findings, goal)
    power = power_of(model.series, findings.measures.groups) if goal.aim == "energy" else None
    obstacle = _obstacle(model, goal, counts, power)
    if obstacle:
        return obstacle
    overhead = _overhead(model, findings)
    told = [model.predict(count) for count in counts]
    within = [each for each in told if _reaches(each, overhead, goal, "value")]
    if not within:
        return _unreached(told, overhead, goal)
    best = _best(within, overhead, goal, power)
    surely = [each for each in told if _reaches(each, overhead, goal, "sure")]
    sure = int(_best(surely, overhead, goal, power).workers) if surely and goal.aim != "energy" else None
    hours, beside = best.workers * goal.charge / 3600, overhead.at(best.workers)
    return Advised(
        key=model.series.key.with_(model.series.key.strategy, int(best.workers)),
        prediction=best,
        overhead=beside,
        cost=_plus(best.seconds, beside).scaled(hours) if model.series.of == "training" else NOTHING,
        joules=_energy(best, power) if power else None,
        sure=sure,
        seen=best.workers in model.series.different,
    )


def _obstacle(model: Model, goal: Goal, counts: Sequence[int], power: Power | None) -> str | None:
    """Why nothing can be said of a series; None where something can."""
    if model.fit is None:
        return f"no scaling model ({model.reason})"
    if goal.aim != "efficiency" and model.series.work == "weak":
        return "its work grows with the workers, so that times and energies are not of one training"
    if goal.aim != "efficiency" and model.series.of != "training":
        return "the time of a whole training is not known"
    if not counts:
        return "quality seems worse at every count"
    if goal.aim == "energy" and power is None:
        return "no energy was recorded at two counts or more"
    return None


def _candidates(model: Model, findings: Findings, goal: Goal) -> list[int]:
    series = model.series
    most = min(goal.most or REACH * series.different[-1], MOST)
    full = max((count for count, nodes in series.nodes.items() if nodes == 1), default=0)
    several = any(nodes > 1 for nodes in series.nodes.values())
    worse = [
        row.workers
        for row in findings.rows
        if (row.strategy, row.key.variant) == (series.key.strategy, series.key.variant)
        and row.verdict.seems_worse
    ]
    below = min(worse, default=most + 1)
    return [
        count
        for count in range(series.different[0], min(most, below - 1) + 1)
        if not several or not full or count <= full or count % full == 0 or count in series.different
    ]


@dataclass(frozen=True)
class _Overhead:
    """Mean seconds of a job beside training, by measured count; empty where nobody knows."""

    measured: Mapping[int, float]

    def at(self, workers: float) -> float:
        """At a count: the larger of the measured counts' on either side of it."""
        below = max((count for count in self.measured if count <= workers), default=None)
        above = min((count for count in self.measured if count >= workers), default=below)
        return max((self.measured[count] for count in (below, above) if count is not None), default=0.0)


def _overhead(model: Model, findings: Findings) -> _Overhead:
    means = {}
    for count in model.series.different:
        runs = findings.measures.groups[model.series.key.with_(model.series.key.strategy, count)]
        spent = [
            max(0.0, run.result.wall_seconds - run.result.training_seconds)
            for run in runs
            if run.result.wall_seconds is not None and run.result.training_seconds is not None
        ]
        if spent:
            means[count] = sum(spent) / len(spent)
    return _Overhead(means)


def _reaches(each: Prediction, overhead: _Overhead, goal: Goal, how: Literal["value", "sure"]) -> bool:
    if goal.aim == "energy":
        return True
    if goal.aim == "efficiency":
        kept = each.efficiency.value if how == "value" else each.efficiency.low
        # At the reference itself rounding is not to decide.
        return kept is not None and kept >= goal.value * (1 - 1e-9)
    taken = each.seconds.value if how == "value" else each.seconds.high
    return taken is not None and taken + overhead.at(each.workers) <= goal.value


def _best(told: Sequence[Prediction], overhead: _Overhead, goal: Goal, power: Power | None) -> Prediction:
    if goal.aim == "efficiency":
        return max(told, key=lambda each: each.workers)
    if goal.aim == "deadline":
        return min(
            told, key=lambda each: (each.workers * (_value(each) + overhead.at(each.workers)), each.workers)
        )
    assert power is not None
    return min(told, key=lambda each: _energy(each, power))


def _unreached(told: Sequence[Prediction], overhead: _Overhead, goal: Goal) -> str:
    if goal.aim == "efficiency":
        best = max(told, key=lambda each: each.efficiency.value or 0.0)
        return (
            f"no count keeps an efficiency of {goal.value:g}; the most is {best.efficiency.value:.2f} on"
            f" {best.workers}"
        )
    best = min(told, key=lambda each: _value(each) + overhead.at(each.workers))
    return (
        f"no count up to {told[-1].workers} meets the deadline; the shortest takes"
        f" {_value(best) + overhead.at(best.workers):,.0f} s on {best.workers}"
    )


def _rank(each: Advised, goal: Goal) -> float:
    if goal.aim == "efficiency":
        return _value(each.prediction)  # the one that is done first
    if goal.aim == "deadline":
        return each.cost.value or 0.0
    return each.joules or 0.0


def _energy(each: Prediction, power: Power) -> float:
    return power.watts(each.workers) * _value(each)


def _value(each: Prediction) -> float:
    assert each.seconds.value is not None
    return each.seconds.value


def _plus(seconds: Estimate, overhead: float) -> Estimate:
    return Estimate(
        *(None if end is None else end + overhead for end in (seconds.value, seconds.low, seconds.high))
    )


def _name(key: Key) -> str:
    return f"{key.strategy} ({key.details})" if key.swept else key.strategy
