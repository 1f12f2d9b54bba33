"""The table of a study: one row per point without its seed, summarising all its runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from scalestudy.analysis.costs import COLUMNS as COSTS
from scalestudy.analysis.costs import Costs, costs_of
from scalestudy.analysis.divergence import chance_of
from scalestudy.analysis.measures import Basis, Measures, oversubscription
from scalestudy.analysis.price import Price, SpeedUp, efficiency, speed_up
from scalestudy.analysis.quality import Verdict, judge
from scalestudy.analysis.runs import Key, Run, sense_of, sources, swept_names
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.to_target import ToTarget, Useful
from scalestudy.config.file import QualityMargin
from scalestudy.config.objectives import Sense, gain
from scalestudy.plugins.strategies import is_synchronous

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Row:
    """All runs of a point without its seed, summarised. Times in seconds, throughput in samples per second.

    Attributes:
        communication: Library that summed gradients; None if nothing was exchanged or it was not recorded.
        seeds: Seed of each run; None where unknown.
        samples_processed: Samples of one training; None if runs differ or it is unknown.
        wall_seconds: From the start of the processes to the result.
        digits: Decimals of the quality in text.
        constant_quality: Quality of a constant prediction: chance. None if it was not recorded.
        oversubscribed: Why its times cannot be used.
        basis: Quantity whose ratio is `speed.steady`: "throughput", or the inverse of the mean time of an
            "epoch" or of the "training".
        same_work: Whether all of its runs did the same work, as far as known.
        source: Files and lines that it was taken from; None for our own runs.
        failed_runs: Number of runs that diverged, stayed at chance level or collapsed.
        worst_quality: Quality of its worst run.
        timings: How many of its runs are timing runs, whose times are those of a training, computed.
        workers_lost: Workers that were lost in runs that continued without them, over all runs.
        price: Time and cost of one training; None if it was not timed.
        to_target: Time and cost until the target quality was reached; None if its epochs lack a quality.
        useful: Useful speed-up; None if no run that makes these updates recorded qualities by epoch.
    """

    key: Key
    implementation: str
    communication: str | None
    seeds: tuple[int | None, ...]
    global_batch: int | None
    samples_processed: int | None
    throughput: Estimate
    training_seconds: Estimate
    wall_seconds: Estimate
    speed: SpeedUp
    quality: Estimate
    metric: str
    sense: Sense
    digits: int
    constant_quality: float | None
    verdict: Verdict
    oversubscribed: str | None
    costs: Costs
    basis: Basis
    same_work: bool
    source: str | None
    failed_runs: int
    worst_quality: float | None
    workers_lost: int
    timings: int = 0
    price: Price | None = None
    to_target: ToTarget | None = None
    useful: Useful | None = None

    @property
    def strategy(self) -> str:
        """Strategy as written in the sweep."""
        return self.key.strategy

    @property
    def workers(self) -> int:
        """Number of workers."""
        return self.key.workers

    @property
    def runs(self) -> int:
        """Number of finished runs."""
        return len(self.seeds)

    @property
    def is_baseline(self) -> bool:
        """Whether it has no speed-up to show: one worker, or the baseline of a relative speed-up."""
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
        """Estimate behind one of the columns in `MEASURED`."""
        return MEASURED[column](self)


MEASURED: dict[str, Callable[[Row], Estimate]] = {
    "throughput": lambda row: row.throughput,
    "training_seconds": lambda row: row.training_seconds,
    "speedup": lambda row: row.speed.steady,
    "efficiency": lambda row: row.efficiency,
    "quality": lambda row: row.quality,
    "speedup_training": lambda row: row.speed.training,
    "efficiency_training": lambda row: row.efficiency_training,
    "wall_seconds": lambda row: row.wall_seconds,
    "speedup_wall": lambda row: row.speed.wall,
}
"""Columns with `_low` and `_high`, in the table's order."""


def rows_of(measures: Measures, margin: QualityMargin | None = None) -> list[Row]:
    """One row for each point without its seed, in reading order; `margin` is the accepted loss of quality."""
    return [_row(key, measures, margin) for key in measures.groups]


def _row(key: Key, measures: Measures, margin: QualityMargin | None) -> Row:
    runs, sense = measures.groups[key], measures.senses[key]
    first = runs[0].result
    trained = measures.trained[key]
    samples = {run.result.samples_processed for run in runs}
    work = {(run.result.samples_processed, run.result.epochs) for run in runs}
    qualities = [run.result.quality for run in trained if run.result.quality is not None]
    ordered = (
        sense.better is not None and len(qualities) == len(trained) > 0 and all(map(math.isfinite, qualities))
    )
    return Row(
        key=key,
        implementation=first.implementation,
        communication=first.communication,
        seeds=tuple(run.result.seed for run in runs),
        global_batch=first.global_batch,
        samples_processed=next(iter(samples)) if len(samples) == 1 else None,
        throughput=measures.throughput.mean(key),
        training_seconds=measures.training_seconds.mean(key),
        wall_seconds=measures.wall_seconds.mean(key),
        speed=speed_up(key, measures),
        quality=measures.quality.mean(key),
        metric=first.metric,
        sense=sense,
        digits=measures.digits[key],
        constant_quality=chance_of(trained),
        verdict=judge(key, measures, margin),
        oversubscribed=oversubscription(runs),
        costs=costs_of(runs),
        basis=measures.bases[key],
        same_work=len(samples) == 1 and (None not in samples or len(work) == 1),
        source=sources(runs) or None,
        failed_runs=len(measures.failed[key]),
        workers_lost=sum(run.result.workers_lost for run in runs),
        timings=sum(run.is_timing for run in runs),
        worst_quality=(min if sense.better == "higher" else max)(qualities) if ordered else None,
    )


def best_single(rows: Sequence[Row], metric: str | None = None) -> Row | None:
    """The one-worker row with the best quality by `metric`, or by any; None if none learned anything."""
    singles = [
        row
        for row in rows
        if row.workers == 1
        and row.metric == (metric or row.metric)
        and row.sense.better is not None
        and not row.verdict.failed
        and row.quality.value is not None
    ]
    return max(
        singles,
        key=lambda row: gain(row.quality.value or 0.0, row.sense.better or "higher"),
        default=None,
    )


Kind = Literal["text", "whole", "float", "flag"]
_Column = tuple[Kind, Callable[[Row], Any]]


def _intervals(names: Sequence[str]) -> dict[str, _Column]:
    """Columns for value, low and high end of each estimate."""
    ends = {"": "value", "_low": "low", "_high": "high"}

    def column(name: str, end: str) -> _Column:
        return "float", lambda row: getattr(row.measured(name), end)

    return {f"{name}{ending}": column(name, end) for name in names for ending, end in ends.items()}


def _cost(name: str) -> _Column:
    return "text" if name in ("energy_of", "unmeasured") else "float", lambda row: getattr(row.costs, name)


def _priced(get: Callable[[Price], Any], kind: Kind = "float") -> _Column:
    return kind, lambda row: get(row.price) if row.price else None


def _target(get: Callable[[ToTarget], Any], kind: Kind = "float") -> _Column:
    return kind, lambda row: get(row.to_target) if row.to_target else None


def _useful(get: Callable[[Useful], Any]) -> _Column:
    return "float", lambda row: get(row.useful) if row.useful else None


_COLUMNS: dict[str, _Column] = {
    "strategy": ("text", lambda row: row.strategy),
    "workers": ("whole", lambda row: row.workers),
    "runs": ("whole", lambda row: row.runs),
    "global_batch": ("whole", lambda row: row.global_batch),
    **_intervals([*MEASURED][:5]),
    "metric": ("text", lambda row: row.metric),
    **_intervals([*MEASURED][5:]),
    "oversubscribed": ("text", lambda row: row.oversubscribed),
    "baseline": ("text", lambda row: row.speed.baseline.label if row.speed.baseline else None),
    "implementation": ("text", lambda row: row.implementation),
    "speedup_note": ("text", lambda row: row.speed.reason or row.speed.note),
    "quality_note": ("text", lambda row: row.verdict.sentence),
    "better": ("text", lambda row: row.sense.better),
    "constant_quality": ("float", lambda row: row.constant_quality),
    "communication": ("text", lambda row: row.communication),
    **{name: _cost(name) for name in COSTS},
    "cost": _priced(lambda price: price.cost.value),
    "cost_unit": _priced(lambda price: f"{price.bill}-hours", "text"),
    "cost_efficiency": _priced(lambda price: price.efficiency.value),
    "cost_efficiency_low": _priced(lambda price: price.efficiency.low),
    "cost_efficiency_high": _priced(lambda price: price.efficiency.high),
    "pareto": _priced(lambda price: price.on_front, "flag"),
    "marginal_efficiency": _priced(lambda price: price.marginal),
    "target_quality": _target(lambda target: target.quality),
    "target_reached": _target(lambda target: target.reached, "whole"),
    "target_seconds": _target(lambda target: target.seconds.value),
    "target_seconds_low": _target(lambda target: target.seconds.low),
    "target_seconds_high": _target(lambda target: target.seconds.high),
    "target_cost": _target(lambda target: target.cost.value),
    "worst_quality": ("float", lambda row: row.worst_quality),
    "failed_runs": ("whole", lambda row: row.failed_runs),
    "speedup_basis": ("text", lambda row: None if row.speed.steady.value is None else row.basis),
    "synchronous": ("flag", lambda row: is_synchronous(row.implementation)),
    "workers_lost": ("whole", lambda row: row.workers_lost),
    "timing_runs": ("whole", lambda row: row.timings),
    "taken_from": ("text", lambda row: row.source),
    "useful": _useful(lambda useful: useful.speedup.value),
    "useful_low": _useful(lambda useful: useful.speedup.low),
    "useful_high": _useful(lambda useful: useful.speedup.high),
    "useful_at_most": _useful(lambda useful: useful.at_most),
    "samples_ratio": _useful(lambda useful: useful.ratio.value),
    "samples_ratio_low": _useful(lambda useful: useful.ratio.low),
    "samples_ratio_high": _useful(lambda useful: useful.ratio.high),
}
"""Column names in order, which scripts rely on; other swept names come after the workers."""


def columns(swept: Sequence[str] = ()) -> list[str]:
    """Column names in order; `swept` are the other swept names."""
    first, rest = list(_COLUMNS)[:2], list(_COLUMNS)[2:]
    return [*first, *swept, *rest]


def records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows as dictionaries with the names of `columns`; numbers that are not finite become None."""
    names = sorted({name for row in rows for name in row.key.swept})
    return [
        {
            name: _finite(_COLUMNS[name][1](row)) if name in _COLUMNS else row.key.swept.get(name)
            for name in columns(names)
        }
        for row in rows
    ]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


RUN_FIELDS = (
    "name",
    "strategy",
    "workers",
    "seed",
    "implementation",
    "communication",
    "per_worker_batch",
    "global_batch",
    "epochs",
    "updates",
    "samples_processed",
    "throughput",
    "training_seconds",
    "wall_seconds",
    "metric",
    "better",
    "quality",
    "constant_quality",
    "best_quality",
    "best_epoch",
    "oversubscribed",
    "began",
    "finished",
    "order",
    "place",
    "hosts",
)


def as_frame(rows: Sequence[Row]) -> "pl.DataFrame":
    """Rows as a data frame whose column types do not depend on the values."""
    import polars as pl

    types = {"text": pl.String, "whole": pl.Int64, "float": pl.Float64, "flag": pl.Boolean}
    names, table = sorted({name for row in rows for name in row.key.swept}), records(rows)
    values = {name: [record[name] for record in table] for name in columns(names)}
    return pl.DataFrame(
        [
            pl.Series(name, column, types[_COLUMNS[name][0]]) if name in _COLUMNS else _swept(name, column)
            for name, column in values.items()
        ]
    )


def runs_table(runs: Sequence[Run]) -> "pl.DataFrame":
    """A data frame with one row per run: its settings and its measurements."""
    import polars as pl

    series = [pl.Series(field, [_value(run, field) for run in runs], strict=False) for field in RUN_FIELDS]
    swept = [_swept(name, [run.result.swept.get(name) for run in runs]) for name in swept_names(runs)]
    return pl.DataFrame([*series, *swept, pl.Series("folder", [run.folder for run in runs], pl.String)])


def _value(run: Run, field: str) -> Any:
    if field == "hosts":
        return " ".join(run.result.hosts)
    # Records that lack the direction took the highest value as the best.
    unknown = run.result.better is None and sense_of([run]).better != "higher"
    return None if unknown and field.startswith("best_") else getattr(run.result, field)


def _swept(name: str, values: list[Any]) -> "pl.Series":
    """Swept values in their own type if they share one, otherwise as text."""
    import polars as pl

    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in values], pl.Float64)
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return pl.Series(name, values)
    return pl.Series(name, [None if value is None else str(value) for value in values], pl.String)
