"""Columns of the tables on a proposal page, by the name that panels use."""

from collections.abc import Callable, Sequence
from math import floor, log10
from typing import NamedTuple

from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.study_table import Row
from scalestudy.features.proposal.missing import AGAIN, BASELINE, GPUS, LONGER
from scalestudy.features.proposal.subject import ProposalSubject
from scalestudy.report.number_format import (
    NOT_AVAILABLE,
    decimals,
    time_unit,
    with_interval,
)


class PanelColumn(NamedTuple):
    """A column of a panel's table; {time} and {against} in its unit depend on the study."""

    title: str
    value: Callable[[ProposalSubject, Row], Estimate | float | None]
    unit: str = ""
    digits: int | None = None
    """Number of decimals; if None, chosen from the values."""
    remedy: str = AGAIN
    """How to obtain values if all cells are blank."""

    def estimate(self, subject: ProposalSubject, row: Row) -> Estimate:
        """Return the value in a row."""
        value = self.value(subject, row)
        if isinstance(value, Estimate):
            return value
        return Estimate(value)

    def cells(self, subject: ProposalSubject) -> list[str]:
        """Return a cell for each row; "" if the value is unknown."""
        estimates = [self.estimate(subject, row) for row in subject.rows]
        digits = self.digits
        if digits is None:
            digits = _digits_for(estimates)
        cells = []
        for estimate in estimates:
            cell = with_interval(estimate, digits)
            # An empty cell, not a dash, so that a column without any value is left out.
            if cell == NOT_AVAILABLE:
                cell = ""
            cells.append(cell)
        return cells


def _digits_for(estimates: Sequence[Estimate]) -> int:
    """Return the decimals that give every value three significant digits; six at most."""
    values = [estimate.value for estimate in estimates if estimate.value]
    smallest = min(map(abs, values), default=1.0)
    if smallest >= 0.5:
        return decimals(values)
    return min(6, 2 - floor(log10(smallest)))


def unit_of(column: PanelColumn, subject: ProposalSubject) -> str:
    """Return the unit below a column's title."""
    time, _ = _time_unit(subject)
    baseline = max(row.speed.against for row in subject.rows)
    against = ""
    # A speed-up relative to two workers must not pass for one relative to one.
    if baseline > 1:
        against = f", against {baseline}"
    return column.unit.format(time=time, against=against)


def _time_unit(subject: ProposalSubject) -> tuple[str, float]:
    """Return the unit of all training times on the page, and its seconds."""
    return time_unit([row.training_seconds.value or 0.0 for row in subject.rows])


def _training_time(subject: ProposalSubject, row: Row) -> Estimate:
    _, unit = _time_unit(subject)
    return row.training_seconds.scaled(1 / unit)


def _rest(subject: ProposalSubject, row: Row) -> float:
    wall = row.wall_seconds.value or 0.0
    training = row.training_seconds.value or 0.0
    _, unit = _time_unit(subject)
    return (wall - training) / unit


def _of_gpus(
    name: str, *, by_run: bool
) -> Callable[[ProposalSubject, Row], float | None]:
    """Return a quantity's mean over GPUs, or `by_run` over runs of its sum; None if any GPU lacks it."""

    def value(subject: ProposalSubject, row: Row) -> float | None:
        runs = subject.runs(row)
        values: list[float | None] = []
        for run in runs:
            for use in run.gpus:
                values.append(getattr(use, name))
        known = [value for value in values if value is not None]
        # A mean over the GPUs that answered would pass for one over all.
        if not values or len(known) < len(values):
            return None
        if by_run:
            return sum(known) / len(runs)
        return sum(known) / len(known)

    return value


def gib(count: float | None) -> float | None:
    """Convert bytes to GiB."""
    if count is None:
        return None
    return count / 2**30


def _node_hours(subject: ProposalSubject, row: Row) -> float | None:
    nodes = subject.nodes(row)
    if not nodes:
        return nodes
    return nodes * subject.hours(row)


COLUMNS: dict[str, PanelColumn] = {
    "workers": PanelColumn("Workers", lambda _, row: row.workers, digits=0),
    "nodes": PanelColumn("Nodes", lambda s, row: s.nodes(row), digits=0),
    "runs": PanelColumn("Runs", lambda _, row: row.runs, digits=0),
    "batch": PanelColumn("Global batch", lambda _, row: row.global_batch, "samples", 0),
    "throughput": PanelColumn(
        "Throughput",
        lambda _, row: row.throughput,
        "samples/s",
        remedy=LONGER,
    ),
    "training_time": PanelColumn(
        "Training time",
        _training_time,
        "{time}",
    ),
    "rest": PanelColumn("Start-up and rest", _rest, "{time}"),
    "speedup": PanelColumn(
        "Speed-up",
        lambda _, row: row.speed.steady,
        "throughput{against}",
        2,
        BASELINE,
    ),
    "speedup_training": PanelColumn(
        "Speed-up",
        lambda _, row: row.speed.training,
        "training time{against}",
        2,
        BASELINE,
    ),
    "efficiency": PanelColumn(
        "Efficiency",
        lambda _, row: row.efficiency,
        "throughput{against}",
        2,
        BASELINE,
    ),
    "efficiency_training": PanelColumn(
        "Efficiency",
        lambda _, row: row.efficiency_training,
        "training time{against}",
        2,
        BASELINE,
    ),
    "device_hours": PanelColumn(
        "Device-hours",
        lambda _, row: row.costs.device_hours,
        "a training",
    ),
    "node_hours": PanelColumn("Node-hours", _node_hours, "a training"),
    "energy_wh": PanelColumn(
        "Energy",
        lambda _, row: row.costs.watt_hours,
        "Wh a training",
        remedy=GPUS,
    ),
    "watts": PanelColumn(
        "Power",
        _of_gpus("watts", by_run=True),
        "W of GPUs",
        remedy=GPUS,
    ),
    "sm_percent": PanelColumn(
        "SM use",
        lambda _, row: row.costs.gpu_percent,
        "%",
        0,
        GPUS,
    ),
    "memory_percent": PanelColumn(
        "Memory use",
        _of_gpus("memory_percent", by_run=False),
        "% of GPUs",
        0,
        GPUS,
    ),
    "gpu_memory": PanelColumn(
        "GPU memory",
        lambda _, row: gib(row.costs.gpu_memory_bytes),
        "peak, GiB",
        remedy=GPUS,
    ),
    "host_memory": PanelColumn(
        "Host memory",
        lambda _, row: gib(row.costs.peak_memory_bytes),
        "peak, GiB",
    ),
}
"""Columns by the name that panels use."""
