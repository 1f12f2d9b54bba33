"""The table of a study: one row per point without its seed, summarising all its runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from scalestudy.analysis.costs import Costs, cost_columns, costs_of
from scalestudy.analysis.divergence import chance_of
from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.measures import Basis, Measures, why_oversubscribed
from scalestudy.analysis.price import Price
from scalestudy.analysis.quality import Verdict, judge
from scalestudy.analysis.runs import (
    Key,
    Run,
    key_of_run,
    quality_sense,
    sources,
    swept_keys,
)
from scalestudy.analysis.speed_up import SpeedUp, speed_up
from scalestudy.analysis.to_target import Useful
from scalestudy.analysis.wording.costs import describe_unmeasured
from scalestudy.analysis.wording.speed_up import describe_reason, describe_relative
from scalestudy.analysis.wording.verdicts import describe_verdict
from scalestudy.config.metric_senses import Sense, gain
from scalestudy.config.quality_margin import QualityMargin
from scalestudy.plugins.strategies import is_synchronous

if TYPE_CHECKING:
    import polars as pl
Kind = Literal["text", "whole", "float", "flag"]
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
    "place",
    "hosts",
)


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
        source: Files and lines that it was taken from; None for our own runs.
        failed_runs: Number of runs that diverged, stayed at chance level or collapsed.
        worst_quality: Quality of its worst run.
        timings: How many of its runs are timing runs, whose times are those of a training, computed.
        quality_of: Row whose trainings gave the quality, if none of its own did: their updates are equal.
        price: Time and cost of one training; None if it was not timed.
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
    source: str | None
    failed_runs: int
    worst_quality: float | None
    timings: int = 0
    quality_of: Key | None = None
    price: Price | None = None
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
    def trainings(self) -> int:
        """Number of its finished runs that trained to the end."""
        return self.runs - self.timings

    @property
    def is_baseline(self) -> bool:
        """Whether it has no speed-up to show: one worker, or the baseline of a relative speed-up."""
        return self.workers == 1 or self.speed.baseline == self.key

    @property
    def efficiency(self) -> Estimate:
        """E(n) from steady throughput."""
        return self.speed.steady.scaled(self.speed.against / self.workers)

    @property
    def efficiency_training(self) -> Estimate:
        """E(n) from total training time."""
        return self.speed.training.scaled(self.speed.against / self.workers)


def rows_of(measures: Measures, margin: QualityMargin | None = None) -> list[Row]:
    """One row for each point without its seed, in reading order; `margin` is the accepted loss of quality."""
    return [_row(key, measures, margin) for key in measures.groups]


def _row(key: Key, measures: Measures, margin: QualityMargin | None) -> Row:
    runs = measures.groups[key]
    sense = measures.senses[key]
    first = runs[0].result
    trained = measures.trained[key]
    seeds, amounts, timings = [], set(), 0
    for run in runs:
        seeds.append(run.result.seed)
        amounts.add(run.result.samples_processed)
        if run.is_timing:
            timings += 1
    samples = amounts.pop()
    if amounts:
        # Splits by groups differ in their sizes: no number is that of a training of the row.
        samples = None
    return Row(
        key=key,
        implementation=first.implementation,
        communication=first.communication,
        seeds=tuple(seeds),
        global_batch=first.global_batch,
        samples_processed=samples,
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
        oversubscribed=why_oversubscribed(runs),
        costs=costs_of(runs),
        basis=measures.bases[key],
        source=sources(runs) or None,
        failed_runs=len(measures.failed[key]),
        timings=timings,
        quality_of=_trained_row(key, measures),
        worst_quality=_worst_quality(trained, sense),
    )


def _worst_quality(runs: Sequence[Run], sense: Sense) -> float | None:
    """None if a run lacks a finite quality, or if it is not known which is better."""
    if sense.better is None or not runs:
        return None
    qualities = []
    for run in runs:
        # A diverged run is worse than any number.
        if run.result.quality is None or not math.isfinite(run.result.quality):
            return None
        qualities.append(run.result.quality)
    if sense.better == "higher":
        return min(qualities)
    return max(qualities)


def _trained_row(key: Key, measures: Measures) -> Key | None:
    """The row that was trained in the place of a row; None if it was trained itself, or none was."""
    if not all(run.is_timing for run in measures.groups[key]):
        return None
    trained = measures.trained[key]
    if not trained:
        return None
    return key_of_run(trained[0])


def best_single(rows: Sequence[Row], metric: str | None = None) -> Row | None:
    """The one-worker row with the best quality by `metric`, or by any; None if none learned anything."""
    best, highest = None, -math.inf
    for row in rows:
        if row.workers != 1:
            continue
        if metric and row.metric != metric:
            continue
        if row.sense.better is None or row.quality.value is None:
            continue
        # A row with a run that learned nothing has a mean that is of neither kind of run.
        if row.verdict.failed:
            continue
        quality = gain(row.quality.value, row.sense.better)
        if best is None or quality > highest:
            best, highest = row, quality
    return best


_Column = tuple[Kind, str | Callable[[Row], Any]]
"""A column's type, and its value: a path of attributes of the row, or a function."""


def _interval(name: str, estimate: str) -> dict[str, _Column]:
    """Columns for value, low and high end of an estimate."""
    return {
        name: ("float", f"{estimate}.value"),
        f"{name}_low": ("float", f"{estimate}.low"),
        f"{name}_high": ("float", f"{estimate}.high"),
    }


def _costs() -> dict[str, _Column]:
    """Columns for what a row cost."""
    found: dict[str, _Column] = {}
    for name in cost_columns():
        found[name] = ("float", f"costs.{name}")
    found["unmeasured"] = (
        "text",
        lambda row: describe_unmeasured(row.costs.unmeasured),
    )
    return found


@cache
def _row_columns() -> dict[str, _Column]:
    """Columns by name, in order; scripts rely on the names. Other swept names come after the workers."""
    return {
        "strategy": ("text", "strategy"),
        "workers": ("whole", "workers"),
        "runs": ("whole", "runs"),
        "global_batch": ("whole", "global_batch"),
        **_interval("throughput", "throughput"),
        **_interval("training_seconds", "training_seconds"),
        **_interval("speedup", "speed.steady"),
        **_interval("efficiency", "efficiency"),
        **_interval("quality", "quality"),
        "metric": ("text", "metric"),
        **_interval("speedup_training", "speed.training"),
        **_interval("efficiency_training", "efficiency_training"),
        **_interval("wall_seconds", "wall_seconds"),
        **_interval("speedup_wall", "speed.wall"),
        "oversubscribed": ("text", "oversubscribed"),
        "baseline": ("text", "speed.baseline.label"),
        "implementation": ("text", "implementation"),
        "speedup_note": ("text", lambda row: _speedup_note(row.speed)),
        "quality_note": ("text", lambda row: describe_verdict(row.verdict)),
        "better": ("text", "sense.better"),
        "constant_quality": ("float", "constant_quality"),
        "communication": ("text", "communication"),
        **_costs(),
        "cost": ("float", "price.cost.value"),
        "cost_unit": ("text", lambda row: _cost_unit(row.price)),
        **_interval("cost_efficiency", "price.efficiency"),
        "pareto": ("flag", "price.on_front"),
        "target_quality": ("float", "useful.target"),
        "worst_quality": ("float", "worst_quality"),
        "failed_runs": ("whole", "failed_runs"),
        "speedup_basis": ("text", _basis),
        "synchronous": ("flag", lambda row: is_synchronous(row.implementation)),
        "timing_runs": ("whole", "timings"),
        "trainings": ("whole", "trainings"),
        "quality_of": ("text", "quality_of.label"),
        "planned_seconds": ("float", lambda row: _planned_seconds(row.price)),
        "taken_from": ("text", "source"),
        **_interval("useful", "useful.speedup"),
        **_interval("samples_ratio", "useful.ratio"),
    }


def _speedup_note(speed: SpeedUp) -> str | None:
    """Why there is no speed-up, or which row a relative one is against."""
    return describe_reason(speed.reason) or describe_relative(speed)


def _planned_seconds(price: Price | None) -> float | None:
    """Time of the planned training from start to result; None if it is unknown."""
    if price is None or price.basis != "wall":
        return None
    return price.seconds.value


def _cost_unit(price: Price | None) -> str | None:
    if price is None:
        return None
    return f"{price.bill}-hours"


def _basis(row: Row) -> str | None:
    if row.speed.steady.value is None:
        return None
    return row.basis


def columns(swept: Sequence[str] = ()) -> list[str]:
    """Column names in order; `swept` are the other swept names."""
    # Scripts rely on the names and on the order of what is fixed.
    strategy, workers, *others = _row_columns()
    return [strategy, workers, *swept, *others]


def records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows as dictionaries with the names of `columns`; numbers that are not finite become None."""
    names = columns(_swept_names(rows))
    own = _row_columns()
    table = []
    for row in rows:
        record = {}
        for name in names:
            if name in own:
                record[name] = _cell(row, *own[name])
            else:
                record[name] = row.key.swept.get(name)
        table.append(record)
    return table


def _swept_names(rows: Sequence[Row]) -> list[str]:
    names: set[str] = set()
    for row in rows:
        names.update(row.key.swept)
    return sorted(names)


def _cell(row: Row, _: Kind, of: str | Callable[[Row], Any]) -> Any:
    """Value of a column; None if a part of its path is None, or for a number that is not finite."""
    value: Any = row
    if not isinstance(of, str):
        value = of(row)
    else:
        for name in of.split("."):
            if value is None:
                break
            value = getattr(value, name)
    # JSON has no NaN, and spreadsheets read one as a text.
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def as_frame(rows: Sequence[Row]) -> "pl.DataFrame":
    """Rows as a data frame whose column types do not depend on the values."""
    import polars as pl

    types = {
        "text": pl.String,
        "whole": pl.Int64,
        "float": pl.Float64,
        "flag": pl.Boolean,
    }
    own, table = _row_columns(), records(rows)
    series = []
    for name in columns(_swept_names(rows)):
        values = [record[name] for record in table]
        if name in own:
            kind, _ = own[name]
            series.append(pl.Series(name, values, types[kind]))
        else:
            series.append(_swept(name, values))
    return pl.DataFrame(series)


def runs_table(runs: Sequence[Run]) -> "pl.DataFrame":
    """A data frame with one row per run: its settings and its measurements."""
    import polars as pl

    series = []
    for field in RUN_FIELDS:
        values = [_value(run, field) for run in runs]
        series.append(pl.Series(field, values, strict=False))
    for name in swept_keys(runs):
        values = [run.result.swept.get(name) for run in runs]
        series.append(_swept(name, values))
    folders = [run.folder for run in runs]
    series.append(pl.Series("folder", folders, pl.String))
    return pl.DataFrame(series)


def _value(run: Run, field: str) -> Any:
    if field == "hosts":
        return " ".join(run.result.hosts)
    # Records that lack the direction took the highest value as the best.
    unknown = run.result.better is None
    if field.startswith("best_") and unknown:
        sense = quality_sense([run])
        if sense.better != "higher":
            return None
    return getattr(run.result, field)


def _swept(name: str, values: list[Any]) -> "pl.Series":
    """Swept values in their own type if they share one, otherwise as text."""
    import polars as pl

    kinds = {type(value) for value in values} - {type(None)}
    # A list or a table of a study file has no type of its own in a data frame.
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return pl.Series(name, values)
    if kinds == {int, float}:
        return pl.Series(name, _converted(values, float), pl.Float64)
    return pl.Series(name, _converted(values, str), pl.String)


def _converted(values: Sequence[Any], kind: Callable[[Any], Any]) -> list[Any]:
    """The values in another type; None stays None."""
    converted = []
    for value in values:
        converted.append(None if value is None else kind(value))
    return converted
