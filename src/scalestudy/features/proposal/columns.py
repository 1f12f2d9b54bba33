"""The tables of a panel's page, and what would fill the columns that nobody filled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10
from statistics import fmean

from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.table import Row
from scalestudy.features.proposal.subject import ProposalSubject, significant
from scalestudy.report.document import Heading, Table
from scalestudy.report.format import NOT_AVAILABLE, decimals, time_unit, with_interval


@dataclass(frozen=True)
class Missing:
    """Something that the study does not know: why, without a full stop, and what would supply it."""

    why: str
    remedy: str


AGAIN = "Run the study again with this version."
GPUS = "Run the study on GPUs whose driver tells it (NVML)."
LONGER = "Train for more than one epoch: `epochs` under [train]."
OURS = "Run the study with Scalestudy itself."
REPEATED = "Run 3 seeds: `seed = [0, 1, 2]` under [sweep]."
BASELINE = "Add 1 to `workers` under [sweep]."
CURVE = "Run three counts or more, as `workers = [1, 2, 4]` under [sweep]."


@dataclass(frozen=True)
class PanelColumn:
    """A column of a panel's table.

    Attributes:
        name: Its heading.
        value: What stands in a row.
        unit: Below the heading; made of the subject where it depends on it.
        digits: Decimals; those that its values need when None.
        remedy: What would fill it where it is blank in every row.
    """

    name: str
    value: Callable[[ProposalSubject, Row], Estimate | float | None]
    unit: str | Callable[[ProposalSubject], str] = ""
    digits: int | None = None
    remedy: str = AGAIN

    def heading(self, subject: ProposalSubject) -> Heading:
        """Its heading in this study."""
        return Heading(self.name, self.unit if isinstance(self.unit, str) else self.unit(subject))

    def cells(self, subject: ProposalSubject) -> list[str]:
        """Its cells, one for each row; "" where nothing is known."""
        values = [self.value(subject, row) for row in subject.rows]
        estimates = [value if isinstance(value, Estimate) else Estimate(value) for value in values]
        digits = self.digits
        if digits is None:
            # Three significant digits for every value; six decimals at most.
            known = [estimate.value for estimate in estimates if estimate.value]
            smallest = min(map(abs, known), default=1.0)
            digits = decimals(known) if smallest >= 0.5 else min(6, 2 - floor(log10(smallest)))
        cells = (with_interval(estimate, digits) for estimate in estimates)
        return ["" if cell == NOT_AVAILABLE else cell for cell in cells]


def _gpu_watts(subject: ProposalSubject, row: Row) -> float | None:
    """Mean power of all GPUs of a run together, in W; None as soon as one GPU has not told it."""
    runs = subject.runs(row)
    values = [use.watts for run in runs for use in run.gpus]
    known = [value for value in values if value is not None]
    return sum(known) / len(runs) if known and len(known) == len(values) else None


def _gpu_memory_percent(subject: ProposalSubject, row: Row) -> float | None:
    values = [use.memory_percent for run in subject.runs(row) for use in run.gpus]
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _time_unit(subject: ProposalSubject) -> tuple[str, float]:
    return time_unit([row.training_seconds.value or 0.0 for row in subject.rows])


def _rest(subject: ProposalSubject, row: Row) -> float:
    seconds = (row.wall_seconds.value or 0.0) - (row.training_seconds.value or 0.0)
    return seconds / _time_unit(subject)[1]


def _node_hours(subject: ProposalSubject, row: Row) -> float | None:
    nodes = subject.nodes(row)
    return None if nodes is None else nodes * subject.hours(row)


def _gib(count: float | None) -> float | None:
    return None if count is None else count / 2**30


def _against(what: str) -> Callable[[ProposalSubject], str]:
    """What a speed-up is of, and against how many workers where that is not one."""

    def unit(subject: ProposalSubject) -> str:
        against = max(row.speed.against for row in subject.rows)
        return f"{what}, against {against}" if against > 1 else what

    return unit


def _against_smallest(subject: ProposalSubject) -> str:
    return f"against {subject.smallest.workers}"


COLUMNS: dict[str, PanelColumn] = {
    "workers": PanelColumn("Workers", lambda _, row: row.workers, digits=0),
    "nodes": PanelColumn("Nodes", lambda s, row: s.nodes(row), digits=0),
    "runs": PanelColumn("Runs", lambda _, row: row.runs, digits=0),
    "batch": PanelColumn("Global batch", lambda _, row: row.global_batch, "samples", 0),
    "throughput": PanelColumn("Throughput", lambda _, row: row.throughput, "samples/s", remedy=LONGER),
    "training_time": PanelColumn(
        "Training time",
        lambda s, row: row.training_seconds.scaled(1 / _time_unit(s)[1]),
        lambda s: _time_unit(s)[0],
    ),
    "rest": PanelColumn("Start-up and rest", _rest, lambda s: _time_unit(s)[0]),
    "speedup": PanelColumn("Speed-up", lambda _, row: row.speed.steady, _against("throughput"), 2, BASELINE),
    "speedup_training": PanelColumn(
        "Speed-up", lambda _, row: row.speed.training, _against("training time"), 2, BASELINE
    ),
    "efficiency": PanelColumn(
        "Efficiency", lambda _, row: row.efficiency, _against("throughput"), 2, BASELINE
    ),
    "efficiency_training": PanelColumn(
        "Efficiency", lambda _, row: row.efficiency_training, _against("training time"), 2, BASELINE
    ),
    "speedup_smallest": PanelColumn(
        "Speed-up", lambda s, row: s.times_faster(row, s.smallest), _against_smallest, 2
    ),
    "efficiency_smallest": PanelColumn(
        "Efficiency",
        lambda s, row: s.times_faster(row, s.smallest).scaled(s.smallest.workers / row.workers),
        _against_smallest,
        2,
    ),
    "device_hours": PanelColumn("Device-hours", lambda s, row: row.workers * s.hours(row), "a training"),
    "node_hours": PanelColumn("Node-hours", _node_hours, "a training"),
    "energy_wh": PanelColumn("Energy", lambda _, row: row.costs.watt_hours, "Wh a training", remedy=GPUS),
    "watts": PanelColumn("Power", _gpu_watts, "W of GPUs", remedy=GPUS),
    "sm_percent": PanelColumn("SM use", lambda _, row: row.costs.gpu_percent, "%", 0, GPUS),
    "memory_percent": PanelColumn("Memory use", _gpu_memory_percent, "% of GPUs", 0, GPUS),
    "gpu_memory": PanelColumn(
        "GPU memory", lambda _, row: _gib(row.costs.gpu_memory_bytes), "peak, GiB", remedy=GPUS
    ),
    "host_memory": PanelColumn("Host memory", lambda _, row: _gib(row.costs.peak_memory_bytes), "peak, GiB"),
}
"""By the name that panel files use."""


def table_of(names: Sequence[str], subject: ProposalSubject, caption: str) -> tuple[Table, list[Missing]]:
    """The columns that have a value, and what is missing in those that have none."""
    cells = {name: COLUMNS[name].cells(subject) for name in names}
    filled = [name for name in names if any(cells[name])]
    missing = [
        Missing(f"nothing is known for the column `{name}`", COLUMNS[name].remedy)
        for name in names
        if name not in filled
    ]
    headings = tuple(COLUMNS[name].heading(subject) for name in filled)
    rows = tuple(zip(*(cells[name] for name in filled), strict=True))
    return Table(headings, rows, caption), missing


def gpu_table(subject: ProposalSubject) -> Table | Missing:
    """A row for each GPU of the first run on the workers that are requested, as CSCS's report of a job."""
    run = subject.runs(subject.row)[0]
    if not run.gpus:
        return Missing("no GPU was recorded", GPUS)
    hosts = {rank.rank: rank.host for rank in subject.ranks(subject.row)}
    headings = (
        Heading("Host", numeric=False), Heading("Rank"), Heading("GPU"), Heading("SM use", "%"),
        Heading("Memory use", "%"), Heading("Peak memory", "GiB"), Heading("Power", "W"),
        Heading("Energy", "Wh"),
    )  # fmt: skip
    rows = []
    for use in run.gpus:
        energy = None if use.joules is None else use.joules / 3600
        values = (use.percent, use.memory_percent, _gib(use.allocated_bytes), use.watts, energy)
        cells = ("" if value is None else significant(value, 3) for value in values)
        rows.append((hosts.get(use.rank, ""), str(use.rank), str(use.device), *cells))
    return Table(headings, tuple(rows), f"Each GPU of {run.name}, over its training time.", name="gpus")
