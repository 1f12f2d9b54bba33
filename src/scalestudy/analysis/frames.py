"""The same tables as polars frames, for whoever wants to go on computing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scalestudy.analysis import costs
from scalestudy.analysis.runs import Run, sense_of, swept_names
from scalestudy.analysis.table import MEASURED, PAID, Row, columns, records, summarise

if TYPE_CHECKING:
    import polars as pl

_WHOLE = {
    "workers", "runs", "global_batch", "largest_batch", "failed_runs", "runs_to_settle", "target_reached",
}  # fmt: skip
_NUMBERS = (
    {f"{column}{end}" for column in MEASURED for end in ("", "_low", "_high")}
    | {"constant_quality", "worst_quality", *costs.COLUMNS, *PAID}
) - {*costs.WORDS, *_WHOLE, "cost_unit", "pareto"}
_RUN_FIELDS = (
    *("name", "strategy", "workers", "seed", "implementation", "communication"),
    *(
        "per_worker_batch",
        "global_batch",
        "epochs",
        "updates",
        "samples_processed",
        "throughput",
        "training_seconds",
        "wall_seconds",
    ),
    *("metric", "better", "quality", "constant_quality", "best_quality", "best_epoch", "oversubscribed"),
    *("began", "finished", "order", "place", "hosts"),
)


def summary(runs: Sequence[Run]) -> "pl.DataFrame":
    """One row a point without its seed, under the names of `table.columns`."""
    return as_frame(summarise(runs))


def as_frame(rows: Sequence[Row]) -> "pl.DataFrame":
    """Rows as a frame whose column types do not depend on what was measured."""
    import polars as pl

    names = sorted({name for row in rows for name in row.key.swept})
    found = records(rows)
    series = []
    for name in columns(names):
        values = [record[name] for record in found]
        if name in _NUMBERS:
            series.append(pl.Series(name, values, pl.Float64))
        elif name in names:
            series.append(_swept(name, values))
        elif name == "pareto":
            series.append(pl.Series(name, values, pl.Boolean))
        else:
            series.append(pl.Series(name, values, pl.Int64 if name in _WHOLE else pl.String))
    return pl.DataFrame(series)


def runs_table(runs: Sequence[Run]) -> "pl.DataFrame":
    """One row a run: what was asked for and what was measured."""
    import polars as pl

    series = [pl.Series(field, [_value(run, field) for run in runs], strict=False) for field in _RUN_FIELDS]
    swept = [_swept(name, [run.result.swept.get(name) for run in runs]) for name in swept_names(runs)]
    return pl.DataFrame([*series, *swept, pl.Series("folder", [run.folder for run in runs], pl.String)])


def _value(run: Run, field: str) -> Any:
    if field == "hosts":
        return " ".join(run.result.hosts)
    # Before the direction was recorded, the best was the highest.
    unknown = run.result.better is None and sense_of([run]).better != "higher"
    return None if unknown and field.startswith("best_") else getattr(run.result, field)


def _swept(name: str, values: list[Any]) -> "pl.Series":
    """Swept values in their own type where they share one; otherwise as text."""
    import polars as pl

    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in values], pl.Float64)
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return pl.Series(name, values)
    return pl.Series(name, [None if value is None else str(value) for value in values], pl.String)
