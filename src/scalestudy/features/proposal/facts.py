"""Facts for sentences and columns for tables of a panel's page, and why one is missing."""

from collections.abc import Callable
from math import floor, log10
from typing import NamedTuple

from scalestudy.analysis.runs import metric_label
from scalestudy.analysis.scaling_model import describe_fit, model_sentences
from scalestudy.analysis.statistics import Estimate
from scalestudy.analysis.study_table import Row
from scalestudy.config.point import REPEATS
from scalestudy.features.proposal.subject import ProposalSubject, counted, listed
from scalestudy.plugins.engines import package_labels
from scalestudy.report.notes import environments
from scalestudy.report.number_format import (
    NOT_AVAILABLE,
    decimals,
    number,
    time_unit,
    times_faster,
    with_ends,
    with_interval,
)
from scalestudy.util import units


class Missing(NamedTuple):
    """A missing fact: the reason, without a full stop, and how to obtain it."""

    why: str
    remedy: str


Fact = str | Missing

AGAIN = "Run the study again with this version."
GPUS = "Run the study on GPUs whose driver reports it (NVML)."
LONGER = "Train for more than one epoch: `epochs` under [train]."
REPEATED = "Run 3 seeds: `seed = [0, 1, 2]` under [sweep]."
BASELINE = "Add 1 to `workers` under [sweep]."
OWN_CORES = "Run it where each worker has its own cores or GPU. Its times are excluded."
CURVE = "Run at least three numbers of workers, as in `workers = [1, 2, 4]` under [sweep]."
MORE = "Request more workers: `--workers N`."
NODES = Missing("the number of nodes is not recorded", AGAIN)


class PanelColumn(NamedTuple):
    """A column of a panel's table; {time}, {against} and {smallest} in its unit depend on the study."""

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
        return value if isinstance(value, Estimate) else Estimate(value)

    def lacking(self, subject: ProposalSubject, what: str) -> Missing:
        """Return why the column is blank, and how to obtain values."""
        shared = self.remedy is BASELINE and any(row.oversubscribed for row in subject.rows)
        return Missing(f"no value for {what}", OWN_CORES if shared else self.remedy)

    def cells(self, subject: ProposalSubject) -> list[str]:
        """Return a cell for each row; "" if the value is unknown."""
        estimates = [self.estimate(subject, row) for row in subject.rows]
        digits = self.digits
        if digits is None:
            # Three significant digits for every value; six decimals at most.
            values = [estimate.value for estimate in estimates if estimate.value]
            smallest = min(map(abs, values), default=1.0)
            digits = decimals(values) if smallest >= 0.5 else min(6, 2 - floor(log10(smallest)))
        cells = (with_interval(estimate, digits) for estimate in estimates)
        return ["" if cell == NOT_AVAILABLE else cell for cell in cells]


def unit_of(column: PanelColumn, subject: ProposalSubject) -> str:
    """Return the unit below a column's title."""
    against = max(row.speed.against for row in subject.rows)
    return column.unit.format(
        time=_time_unit(subject)[0],
        against=f", against {against}" if against > 1 else "",
        smallest=subject.smallest.workers,
    )


def _time_unit(subject: ProposalSubject) -> tuple[str, float]:
    return time_unit([row.training_seconds.value or 0.0 for row in subject.rows])


def _rest(subject: ProposalSubject, row: Row) -> float:
    seconds = (row.wall_seconds.value or 0.0) - (row.training_seconds.value or 0.0)
    return seconds / _time_unit(subject)[1]


def _of_gpus(subject: ProposalSubject, row: Row, name: str) -> tuple[float, int] | None:
    """Return the sum of a quantity over the GPUs of a row's runs, and their number; None if any lacks it."""
    values = [getattr(use, name) for run in subject.runs(row) for use in run.gpus]
    return (sum(values), len(values)) if values and None not in values else None


def _watts(subject: ProposalSubject, row: Row) -> float | None:
    """Return the total power of a run's GPUs, in watts, as the mean over runs."""
    total = _of_gpus(subject, row, "watts")
    return total[0] / len(subject.runs(row)) if total else None


def _memory_percent(subject: ProposalSubject, row: Row) -> float | None:
    total = _of_gpus(subject, row, "memory_percent")
    return total[0] / total[1] if total else None


def gib(count: float | None) -> float | None:
    """Convert bytes to GiB."""
    return None if count is None else count / 2**30


def _smaller(subject: ProposalSubject, row: Row) -> Estimate:
    return subject.times_faster(row, subject.smallest)


COLUMNS: dict[str, PanelColumn] = {
    "workers": PanelColumn("Workers", lambda _, row: row.workers, digits=0),
    "nodes": PanelColumn("Nodes", lambda s, row: s.nodes(row), digits=0),
    "runs": PanelColumn("Runs", lambda _, row: row.runs, digits=0),
    "batch": PanelColumn("Global batch", lambda _, row: row.global_batch, "samples", 0),
    "throughput": PanelColumn("Throughput", lambda _, row: row.throughput, "samples/s", remedy=LONGER),
    "training_time": PanelColumn(
        "Training time", lambda s, row: row.training_seconds.scaled(1 / _time_unit(s)[1]), "{time}"
    ),
    "rest": PanelColumn("Start-up and rest", _rest, "{time}"),
    "speedup": PanelColumn("Speed-up", lambda _, row: row.speed.steady, "throughput{against}", 2, BASELINE),
    "speedup_training": PanelColumn(
        "Speed-up", lambda _, row: row.speed.training, "training time{against}", 2, BASELINE
    ),
    "efficiency": PanelColumn(
        "Efficiency", lambda _, row: row.efficiency, "throughput{against}", 2, BASELINE
    ),
    "efficiency_training": PanelColumn(
        "Efficiency", lambda _, row: row.efficiency_training, "training time{against}", 2, BASELINE
    ),
    "speedup_smallest": PanelColumn("Speed-up", _smaller, "against {smallest}", 2),
    "efficiency_smallest": PanelColumn(
        "Efficiency",
        lambda s, row: _smaller(s, row).scaled(s.smallest.workers / row.workers),
        "against {smallest}",
        2,
    ),
    "device_hours": PanelColumn("Device-hours", lambda _, row: row.costs.device_hours, "a training"),
    "node_hours": PanelColumn(
        "Node-hours", lambda s, row: (nodes := s.nodes(row)) and nodes * s.hours(row), "a training"
    ),
    "energy_wh": PanelColumn("Energy", lambda _, row: row.costs.watt_hours, "Wh a training", remedy=GPUS),
    "watts": PanelColumn("Power", _watts, "W of GPUs", remedy=GPUS),
    "sm_percent": PanelColumn("SM use", lambda _, row: row.costs.gpu_percent, "%", 0, GPUS),
    "memory_percent": PanelColumn("Memory use", _memory_percent, "% of GPUs", 0, GPUS),
    "gpu_memory": PanelColumn(
        "GPU memory", lambda _, row: gib(row.costs.gpu_memory_bytes), "peak, GiB", remedy=GPUS
    ),
    "host_memory": PanelColumn("Host memory", lambda _, row: gib(row.costs.peak_memory_bytes), "peak, GiB"),
}
"""Columns by the name that panels use."""


def _quantity(name: str, *, compared: bool = False) -> Callable[[ProposalSubject], Fact]:
    """Return the fact of a column for the requested row; if `compared`, written as "1.6 times faster"."""
    column = COLUMNS[name]
    is_ratio = column.title in ("Speed-up", "Efficiency")

    def words(estimate: Estimate) -> str | None:
        digits = decimals([estimate.value or 0.0]) if column.digits is None else column.digits
        return times_faster(estimate) if compared else with_ends(estimate, digits)

    def fact(subject: ProposalSubject) -> Fact:
        if is_ratio and (subject.row.is_baseline or subject.row is subject.smallest):
            return Missing("the requested row is itself the baseline of the speed-up", f"{BASELINE} {MORE}")
        return words(column.estimate(subject, subject.row)) or column.lacking(subject, column.title)

    return fact


def _beyond_node(subject: ProposalSubject) -> Fact:
    most = max((subject.nodes(row) or 0 for row in subject.rows), default=0)
    if most > 1:
        return counted(most, "node")
    return Missing("all runs stayed on one node", "Run it on two nodes, through a queue.") if most else NODES


def _hardware(subject: ProposalSubject) -> Fact:
    ranks = [rank for run in subject.findings.runs for rank in run.ranks]
    devices = sorted({name for rank in ranks if rank.device_uuids for name in rank.devices})
    text = ", ".join(devices) or dict(environments(subject.findings.runs)).get("Processor", "")
    return text or Missing("the hardware is not recorded", AGAIN)


def _software(subject: ProposalSubject) -> Fact:
    recorded = dict(environments(subject.findings.runs))
    names = dict.fromkeys((*package_labels().values(), "Scalestudy"))
    text = ", ".join(f"{name} {recorded[name]}" for name in names if name in recorded)
    return text or Missing("the versions are not recorded", AGAIN)


def _repeated(subject: ProposalSubject) -> Fact:
    least, most = min(row.runs for row in subject.rows), max(row.runs for row in subject.rows)
    if least < 2:
        return Missing("a point was run only once, so its spread is unknown", REPEATED)
    splits = any(run.result.swept.keys() & REPEATS for run in subject.findings.runs)
    repeats = "repeats (seeds and splits)" if splits else "seeds"
    return f"{most} {repeats}" if least == most else f"{least} to {most} {repeats}"


def _same_work(subject: ProposalSubject) -> Fact:
    samples = {row.samples_processed for row in subject.rows}
    if len(samples) > 1 or None in samples:
        return Missing("runs processed different numbers of samples", "Keep data and epochs the same.")
    return f"{samples.pop():,}"


def _quality(subject: ProposalSubject) -> Fact:
    text, metric = with_ends(subject.row.quality, subject.row.digits), metric_label(subject.row.metric)
    return f"{metric} {text}" if text else Missing(f"a run ended without a finite {metric}", REPEATED)


def _verdict(subject: ProposalSubject) -> Fact:
    reference = None if subject.verdict.kind == "reference" else subject.verdict.reference
    return subject.verdict.sentence + (f" (against {reference.label})" if reference else "")


def _epoch_time(subject: ProposalSubject) -> Fact:
    seconds = (subject.row.training_seconds.value or 0.0) / subject.epochs(subject.row)
    return f"{number(seconds, decimals([seconds]))} s"


def _limits(subject: ProposalSubject) -> Fact:
    keys = {row.key for row in subject.rows}
    model = next((model for model in subject.findings.models if model.series.key in keys), None)
    if model and model.fit:
        return " ".join((describe_fit(model, model.series.key.strategy), *model_sentences(model)))
    return Missing((model.reason if model else "") or "no scaling model can be fitted", CURVE)


def _batch_rule(subject: ProposalSubject) -> Fact:
    sizes = {row.global_batch for row in subject.rows}
    shares = {subject.runs(row)[0].per_worker_batch for row in subject.rows}
    if len(sizes) == 1 and None not in sizes:
        return "the same global batch, so that every update is the same"
    if len(shares) == 1 and None not in shares:
        return "the same batch on each worker, so that the global batch grows with the workers"
    return Missing("neither the global batch nor the per-worker batch is constant", CURVE)


def _lost_share(subject: ProposalSubject) -> Fact:
    if subject.work.unknown:
        runs = counted(subject.work.unknown, "run")
        return Missing(f"{runs} ended without a result, and their end was not recorded", AGAIN)
    return f"{100 * (subject.work.share or 0.0):.1f} %"


FACTS: dict[str, Callable[[ProposalSubject], Fact]] = {name: _quantity(name) for name in COLUMNS} | {
    "strategy": lambda s: s.row.strategy + (f" ({s.row.key.details})" if s.row.key.details else ""),
    "workers": lambda s: counted(s.row.workers, "worker"),
    "counts": lambda s: listed([str(row.workers) for row in s.rows]),
    "nodes": lambda s: counted(nodes, "node") if (nodes := s.nodes(s.row)) else NODES,
    "faster": _quantity("speedup", compared=True),
    "faster_training": _quantity("speedup_training", compared=True),
    "faster_smallest": _quantity("speedup_smallest", compared=True),
    "beyond_node": _beyond_node,
    "hardware": _hardware,
    "software": _software,
    "runs": lambda s: counted(sum(row.runs for row in s.rows), "run"),
    "repeated": _repeated,
    "samples": lambda s: f"{s.runs(s.row)[0].training_samples:,}",
    "same_work": _same_work,
    "epochs": lambda s: counted(s.epochs(s.row), "epoch"),
    "parameters": lambda s: f"{s.runs(s.row)[0].parameters:,}",
    "precision": lambda s: s.runs(s.row)[0].precision or Missing("the precision is not recorded", AGAIN),
    "quality": _quality,
    "verdict": _verdict,
    "training_time": lambda s: units.duration(s.row.training_seconds.value or 0.0),
    "epoch_time": _epoch_time,
    "start_up": lambda s: units.duration(s.fixed_seconds(s.row)),
    "smallest": lambda s: counted(s.smallest.workers, "worker"),
    "against": lambda s: counted(s.row.speed.against, "worker"),
    "limits": _limits,
    "batch_rule": _batch_rule,
    "energy_of": lambda s: s.row.costs.energy_of or Missing("no energy was recorded", GPUS),
    "lost_share": _lost_share,
    "lost_runs": lambda s: counted(s.work.attempts, "run"),
}
"""Facts by the name that panels use."""
