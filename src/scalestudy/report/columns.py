"""Measured columns of the table as quantities to draw: their names, units, and values by row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scalestudy.analysis.rates import Basis
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.table import MEASURED, Row, records
from scalestudy.report.format import time_unit

NAMES = {
    "throughput": "Throughput",
    "training_seconds": "Training time",
    "wall_seconds": "Time to train, from start to result",
    "target_seconds": "Time to the quality asked for",
    "target_cost": "Unit-hours to the quality asked for",
    "worst_quality": "Quality of the worst run",
    "gpu_percent": "GPU utilisation",
    "cpu_percent": "CPU utilisation",
    "efficiency_training": "Efficiency of training time",
    "watt_hours": "Energy",
    "watt_hours_per_quality": "Energy by quality",
    "node_hours": "Node-hours",
    "device_hours": "Device-hours",
    "flops_per_second": "FLOPs a second",
    "mfu": "Share of the devices' peak (MFU)",
}
UNITS = {
    "throughput": ("samples/s", 1.0), "watt_hours": ("Wh", 1.0), "watt_hours_per_quality": ("Wh", 1.0),
    "flops_per_second": ("TFLOP/s", 1e-12),
}  # fmt: skip
ENDINGS = {"percent": ("%", 1.0), "bytes": ("GiB", 2.0**-30), "hours": ("h", 1.0)}
ELSEWHERE = {
    *("workers", "runs", "global_batch", "constant_quality", "quality", "speedup", "efficiency"),
    *("cost", "cost_efficiency", "marginal_efficiency", "runs_to_settle", "failed_runs", "target_quality"),
    *("target_reached", "speedup_wall"),
    *("speedup_training", "gpu_joules", "cpu_joules", "flops_per_sample", "peak_flops_per_second"),
}
"""Columns that have figures of their own, that say the same in another unit, or that are no measurements."""

BASIS_WORDS: dict[Basis, str] = {
    "throughput": "throughput",
    "epoch": "epoch time",
    "training": "training time",
}


@dataclass(frozen=True)
class Column:
    """One measured column.

    Attributes:
        name: In the table for programs.
        title: For people.
        unit: Of `of`; empty where there is none.
        of: A row's value with the ends of its interval.
    """

    name: str
    title: str
    unit: str
    of: Callable[[Row], Estimate]


def basis_of(rows: Sequence[Row]) -> str:
    """What speed-up is a ratio of in these rows, in words."""
    return " / ".join(dict.fromkeys(BASIS_WORDS[row.basis] for row in rows)) or BASIS_WORDS["throughput"]


def columns_of(rows: Sequence[Row]) -> list[Column]:
    """All columns of numbers that some row has, besides those with figures of their own."""
    found = {row.key: record for row, record in zip(rows, records(rows), strict=True)}
    swept = {name for row in rows for name in row.key.swept}
    names = dict.fromkeys(name for record in found.values() for name in record)
    shown = [
        name
        for name in names
        if name not in ELSEWHERE | swept
        and not name.endswith(("_low", "_high"))
        and any(_is_number(record[name]) for record in found.values())
    ]
    columns = [_column(name, found) for name in shown]
    return columns


def _column(name: str, found: dict[Any, dict[str, Any]]) -> Column:
    title = NAMES.get(name)
    unit, factor = UNITS.get(name) or ENDINGS.get(name.rpartition("_")[2], ("", 1.0))
    if name.endswith("_seconds"):
        unit, length = time_unit([record[name] for record in found.values() if _is_number(record[name])])
        factor = 1 / length
    if title is None:
        words = name.rpartition("_")[0] if unit and name not in MEASURED else name
        title = words.replace("_", " ")
        title = title[0].upper() + title[1:]

    def of(row: Row) -> Estimate:
        record = found[row.key]
        value, low, high = (record.get(f"{name}{end}") for end in ("", "_low", "_high"))
        return Estimate(*(each if _is_number(each) else None for each in (value, low, high))).scaled(factor)

    return Column(name, title, unit, of)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
