"""The columns that a panel's table may have: one row for each number of workers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import floor, log10

from scalestudy.analysis.runs import metric_label
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.table import Row
from scalestudy.features.proposal.hours import hours_of
from scalestudy.features.proposal.remedy import Remedy
from scalestudy.features.proposal.subject import Subject
from scalestudy.features.proposal.use import memory_percent_of, watts_of
from scalestudy.report.document import Heading
from scalestudy.report.format import NOT_AVAILABLE, decimals, time_unit, with_interval

Value = Estimate | float | None


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: Its heading.
        value: What stands in a row.
        unit: Below the heading; made of the subject where it depends on it.
        digits: Decimals; those that its values need when None.
        scale: What divides the values; made of the subject where it depends on it.
        remedy: What would fill it where it is blank in every row.
    """

    name: str
    value: Callable[[Subject, Row], Value]
    unit: str | Callable[[Subject], str] = ""
    digits: int | Callable[[Subject], int] | None = None
    scale: Callable[[Subject], float] = lambda subject: 1.0
    remedy: Remedy = field(default_factory=Remedy)

    def heading(self, subject: Subject) -> Heading:
        """Its heading in this study."""
        return Heading(self.name, self.unit if isinstance(self.unit, str) else self.unit(subject))

    def cells(self, subject: Subject) -> list[str]:
        """Its cells, a row each; "" where nothing is known."""
        divisor = self.scale(subject)
        found = [_estimate(self.value(subject, row)).scaled(1 / divisor) for row in subject.rows]
        digits = self.digits(subject) if callable(self.digits) else self.digits
        if digits is None:
            digits = _digits([each.value for each in found if each.value])
        return [_cell(each, digits) for each in found]


def table_of(names: Sequence[str], subject: Subject) -> tuple[list[Heading], list[list[str]], list[str]]:
    """Headings and rows of the columns that have a value, and the names of those that have none."""
    laid = [(name, COLUMNS[name].heading(subject), COLUMNS[name].cells(subject)) for name in names]
    kept = [(heading, cells) for _, heading, cells in laid if any(cells)]
    blank = [name for name, _, cells in laid if not any(cells)]
    rows = [[cells[place] for _, cells in kept] for place in range(len(subject.rows))]
    return [heading for heading, _ in kept], rows, blank


def _digits(values: Sequence[float]) -> int:
    """Decimals that give every value of a column three significant digits; six at most."""
    smallest = min(map(abs, values), default=1.0)
    return decimals(values) if smallest >= 0.5 else min(6, 2 - floor(log10(smallest)))


def _estimate(value: Value) -> Estimate:
    return value if isinstance(value, Estimate) else Estimate(value)


def _cell(estimate: Estimate, digits: int) -> str:
    text = with_interval(estimate, digits)
    return "" if text == NOT_AVAILABLE else text


def _unit_of_time(subject: Subject) -> tuple[str, float]:
    return time_unit([row.training_seconds.value or 0.0 for row in subject.rows])


def _held(what: str) -> Callable[[Subject], str]:
    """What a speed-up is of, and against how many workers where that is not one."""

    def unit(subject: Subject) -> str:
        against = max(row.speed.against for row in subject.rows)
        return f"{what}, against {against}" if against > 1 else what

    return unit


def _relative(subject: Subject, row: Row) -> Value:
    return subject.faster(row, subject.smallest)


def _relative_efficiency(subject: Subject, row: Row) -> Value:
    return subject.faster(row, subject.smallest).scaled(subject.smallest.workers / row.workers)


def _node_hours(subject: Subject, row: Row) -> Value:
    nodes, hours = subject.nodes(row), hours_of(subject, row)
    return None if nodes is None or hours is None else nodes * hours


def _device_hours(subject: Subject, row: Row) -> Value:
    hours = hours_of(subject, row)
    return None if hours is None else row.workers * hours


def _gib(count: float | None) -> Value:
    return None if count is None else count / 2**30


def _rest(subject: Subject, row: Row) -> Value:
    hours, training = hours_of(subject, row), row.training_seconds.value
    return None if training is None or hours is None else 3600 * hours - training


def _digits_of_quality(subject: Subject) -> int:
    return max(row.digits for row in subject.rows)


_GPUS = Remedy("Run the study on GPUs whose driver tells it (NVML).")
_NODES = Remedy("Say how many workers a node has: `--per-node N`.")
_PEAK = Remedy("Run the study on devices whose peak is known.")
_AGAIN = Remedy("Run the study again with this version.")
_ONE = Remedy(workers=(1,))

COLUMNS: dict[str, Column] = {
    "workers": Column("Workers", lambda _, row: float(row.workers), digits=0),
    "nodes": Column("Nodes", lambda subject, row: _float(subject.nodes(row)), digits=0, remedy=_NODES),
    "runs": Column("Runs", lambda _, row: float(row.runs), digits=0),
    "batch": Column("Global batch", lambda _, row: _float(row.global_batch), "samples", 0),
    "throughput": Column(
        "Throughput", lambda _, row: row.throughput, "samples/s",
        remedy=Remedy("Train for more than one epoch: `epochs` under [train]."),
    ),
    "training_time": Column(
        "Training time", lambda _, row: row.training_seconds,
        lambda subject: _unit_of_time(subject)[0], scale=lambda subject: _unit_of_time(subject)[1],
    ),
    "rest": Column(
        "Start-up and rest", _rest, lambda subject: _unit_of_time(subject)[0],
        scale=lambda subject: _unit_of_time(subject)[1],
    ),
    "speedup": Column("Speed-up", lambda _, row: row.speed.steady, _held("throughput"), 2, remedy=_ONE),
    "speedup_training": Column(
        "Speed-up", lambda _, row: row.speed.training, _held("training time"), 2, remedy=_ONE
    ),
    "efficiency": Column("Efficiency", lambda _, row: row.efficiency, _held("throughput"), 2, remedy=_ONE),
    "efficiency_training": Column(
        "Efficiency", lambda _, row: row.efficiency_training, _held("training time"), 2, remedy=_ONE
    ),
    "speedup_smallest": Column(
        "Speed-up", _relative, lambda subject: f"against {subject.smallest.workers}", 2
    ),
    "efficiency_smallest": Column(
        "Efficiency", _relative_efficiency, lambda subject: f"against {subject.smallest.workers}", 2
    ),
    "quality": Column(
        "Quality", lambda _, row: row.quality, lambda subject: metric_label(subject.row.metric),
        _digits_of_quality,
    ),
    "device_hours": Column("Device-hours", _device_hours, "a training"),
    "node_hours": Column("Node-hours", _node_hours, "a training", remedy=_NODES),
    "energy_wh": Column(
        "Energy", lambda _, row: row.costs.watt_hours, "Wh a training", remedy=_GPUS
    ),
    "watts": Column("Power", lambda subject, row: watts_of(subject.runs(row)), "W of GPUs", remedy=_GPUS),
    "sm_percent": Column("SM use", lambda _, row: row.costs.gpu_percent, "%", 0, remedy=_GPUS),
    "memory_percent": Column(
        "Memory use", lambda subject, row: memory_percent_of(subject.runs(row)), "% of GPUs", 0, remedy=_GPUS
    ),
    "gpu_memory": Column(
        "GPU memory", lambda _, row: _gib(row.costs.gpu_memory_bytes), "peak, GiB", remedy=_GPUS
    ),
    "cpu_percent": Column("CPU use", lambda _, row: row.costs.cpu_percent, "% of cores", 0, remedy=_AGAIN),
    "mfu": Column(
        "MFU", lambda _, row: None if row.costs.mfu is None else 100 * row.costs.mfu, "% of peak",
        remedy=_PEAK,
    ),
    "host_memory": Column(
        "Host memory", lambda _, row: _gib(row.costs.peak_memory_bytes), "peak, GiB",
        remedy=_AGAIN,
    ),
}  # fmt: skip
"""By the name that panel files use."""


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
