"""The table of a study: one row a point without its seed, all of its runs summed up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scalestudy.analysis import costs
from scalestudy.analysis.divergence import chance_of, failures
from scalestudy.analysis.largest_batch import largest_batches
from scalestudy.analysis.measures import Measures, measure, oversubscription
from scalestudy.analysis.quality import Verdict, judge
from scalestudy.analysis.rates import Basis
from scalestudy.analysis.runs import Key, Run, grouped, sources
from scalestudy.analysis.speedup import SpeedUp, efficiency, speed_up
from scalestudy.analysis.statistics import NOTHING, Estimate
from scalestudy.study.metrics import Sense, gain
from scalestudy.study.quality_margin import QualityMargin

if TYPE_CHECKING:
    from scalestudy.analysis.decision import Price
    from scalestudy.analysis.time_to_target import ToTarget

MEASURED = (
    "throughput",
    "training_seconds",
    "speedup",
    "efficiency",
    "quality",
    "speedup_training",
    "efficiency_training",
    "wall_seconds",
    "speedup_wall",
)
"""Columns that come with `_low` and `_high`, in the table's order."""
PAID = (
    "cost", "cost_unit", "cost_efficiency", "cost_efficiency_low", "cost_efficiency_high", "pareto",
    "marginal_efficiency", "runs_to_settle", "target_quality", "target_reached", "target_seconds",
    "target_seconds_low", "target_seconds_high", "target_cost",
)  # fmt: skip
"""Columns of what a training takes and costs, and of the quality asked for."""


@dataclass(frozen=True)
class Row:
    """All runs of a point without its seed, summed up. Seconds, and samples per second."""

    key: Key
    implementation: str
    communication: str | None
    """By what gradients were summed; None where nothing was exchanged, or it was not recorded."""
    seeds: tuple[int | None, ...]
    """Of its runs, one each; None where it is not known."""
    global_batch: int | None
    samples_processed: int | None
    """Samples of one training; None when runs differ, or where it is not known."""
    throughput: Estimate
    training_seconds: Estimate
    wall_seconds: Estimate
    """From the start of the processes to the result."""
    speed: SpeedUp
    quality: Estimate
    metric: str
    sense: Sense
    """Which way the metric is better, and whether it lies in [0, 1]."""
    digits: int
    """Decimals that the quality is written with."""
    constant_quality: float | None
    """Quality of one answer for everything: chance. None where it was not recorded."""
    verdict: Verdict
    oversubscribed: str | None
    costs: costs.Costs
    """Utilisation, memory, energy, hours, bytes and the share of the devices' peak."""
    rate: Estimate = NOTHING
    """What its speed-up is the ratio of: throughput, or what stands for it where that is not known."""
    basis: Basis = "throughput"
    """What `rate` is: "throughput", or the inverse of the mean time of an "epoch", or of the "training"."""
    same_work: bool = True
    """Whether all of its runs did the same work, as far as that is known."""
    source: str | None = None
    """Files and lines that it was taken from; None for runs of ours."""
    failed_runs: int = 0
    """Runs that diverged, stand at chance or collapsed."""
    worst_quality: float | None = None
    """Quality of its worst run."""
    price: "Price | None" = None
    """Time and cost of one training; None where it was not timed."""
    to_target: "ToTarget | None" = None
    """What it took to reach the quality asked for; None where its epochs do not tell."""

    @property
    def strategy(self) -> str:
        """Strategy as swept."""
        return self.key.strategy

    @property
    def workers(self) -> int:
        """Worker count."""
        return self.key.workers

    @property
    def runs(self) -> int:
        """Number of finished runs."""
        return len(self.seeds)

    @property
    def is_baseline(self) -> bool:
        """Whether it has no gain to show: one worker, or the row that a relative speed-up is against."""
        return self.workers == 1 or self.speed.baseline == self.key

    @property
    def efficiency(self) -> Estimate:
        """E(n) from steady throughput."""
        return efficiency(self.speed.steady, self.workers, self.speed.against)

    @property
    def efficiency_training(self) -> Estimate:
        """E(n) from total training time."""
        return efficiency(self.speed.training, self.workers, self.speed.against)

    def measured(self, column: str) -> Estimate:
        """Estimate behind one of the `MEASURED` columns."""
        if column == "speedup":
            return self.speed.steady
        if column == "speedup_training":
            return self.speed.training
        if column == "speedup_wall":
            return self.speed.wall
        estimate = getattr(self, column)
        assert isinstance(estimate, Estimate)
        return estimate


def summarise(runs: Sequence[Run]) -> list[Row]:
    """One row for each point without its seed, in reading order."""
    return rows_of(measure(grouped(runs)))


def rows_of(measures: Measures, margin: QualityMargin | None = None) -> list[Row]:
    """The same, of what was measured; `margin` is the loss of quality that is accepted."""
    batches = largest_batches(measures.groups)
    return [_row(key, measures, batches.get(key), margin) for key in measures.groups]


def _row(key: Key, measures: Measures, largest_batch: int | None, margin: QualityMargin | None) -> Row:
    runs = measures.groups[key]
    first = runs[0].result
    samples = {run.result.samples_processed for run in runs}
    work = {(run.result.samples_processed, run.result.epochs) for run in runs}
    alike = len(samples) == 1 and (None not in samples or len(work) == 1)
    return Row(
        key=key,
        implementation=first.implementation,
        communication=first.communication,
        seeds=tuple(run.result.seed for run in runs),
        global_batch=first.global_batch,
        samples_processed=samples.pop() if len(samples) == 1 else None,
        throughput=measures.throughput.mean(key),
        training_seconds=measures.training_seconds.mean(key),
        wall_seconds=measures.wall_seconds.mean(key),
        speed=speed_up(key, measures),
        quality=measures.quality.mean(key),
        metric=first.metric,
        sense=measures.senses[key],
        digits=measures.digits[key],
        constant_quality=chance_of(runs),
        verdict=judge(key, measures, margin),
        oversubscribed=oversubscription(runs),
        costs=costs.costs_of(runs, largest_batch),
        rate=measures.rate.mean(key),
        basis=measures.bases[key],
        same_work=alike,
        source=sources(runs) or None,
        failed_runs=len(failures(runs, measures.senses[key], measures.digits[key])),
        worst_quality=_worst(runs, measures.senses[key]),
    )


def _worst(runs: Sequence[Run], sense: Sense) -> float | None:
    """Quality of the worst run; None where one is not known or finite, or the direction is not known."""
    known = [run.result.quality for run in runs if run.result.quality is not None]
    if sense.better is None or len(known) < len(runs) or not all(map(math.isfinite, known)):
        return None
    better = sense.better
    return min(known, key=lambda quality: gain(quality, better))


def columns(swept: Sequence[str] = ()) -> list[str]:
    """Column names that scripts rely on, in order; `swept` are the other swept names."""
    measured = [[column, f"{column}_low", f"{column}_high"] for column in MEASURED]
    first = [name for group in measured[:5] for name in group]
    last = [name for group in measured[5:] for name in group]
    names = ["strategy", "workers", *swept, "runs", "global_batch", *first, "metric", *last]
    return [
        *names,
        "oversubscribed",
        "baseline",
        "implementation",
        "speedup_note",
        "quality_note",
        "better",
        "constant_quality",
        "communication",
        *costs.COLUMNS,
        *PAID,
        "worst_quality",
        "failed_runs",
        "speedup_basis",
        "taken_from",
    ]


def records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows under the names of `columns`; numbers that are not finite become None."""
    names = sorted({name for row in rows for name in row.key.swept})
    return [_record(row, names) for row in rows]


def _record(row: Row, names: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {
        "strategy": row.strategy,
        "workers": row.workers,
        "runs": row.runs,
        "global_batch": row.global_batch,
        "metric": row.metric,
        "oversubscribed": row.oversubscribed,
        "baseline": None if row.speed.baseline is None else row.speed.baseline.label,
        "implementation": row.implementation,
        "communication": row.communication,
        "speedup_note": row.speed.reason or row.speed.note,
        "quality_note": row.verdict.sentence,
        "better": row.sense.better,
        "constant_quality": _finite(row.constant_quality),
        **costs.record_of(row.costs),
        "speedup_basis": None if row.speed.steady.value is None else row.basis,
        "taken_from": row.source,
        "worst_quality": row.worst_quality,
        "failed_runs": row.failed_runs,
        **_paid(row),
    }
    values |= {name: row.key.swept.get(name) for name in names}
    for column in MEASURED:
        found = row.measured(column)
        values[column] = _finite(found.value)
        values[f"{column}_low"] = _finite(found.low)
        values[f"{column}_high"] = _finite(found.high)
    return {name: values[name] for name in columns(names)}


def _paid(row: Row) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(PAID)
    price, target = row.price, row.to_target
    if price is not None:
        values |= {
            "cost": price.cost.value,
            "cost_unit": f"{price.bill}-hours",
            "cost_efficiency": price.efficiency.value,
            "cost_efficiency_low": price.efficiency.low,
            "cost_efficiency_high": price.efficiency.high,
            "pareto": price.on_front,
            "marginal_efficiency": price.marginal,
            "runs_to_settle": price.seeds,
        }
    if target is not None:
        values |= {
            "target_quality": target.quality,
            "target_reached": target.reached,
            "target_seconds": target.seconds.value,
            "target_seconds_low": target.seconds.low,
            "target_seconds_high": target.seconds.high,
            "target_cost": target.cost.value,
        }
    return {name: _finite(value) if isinstance(value, float) else value for name, value in values.items()}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
