"""The subject of a proposal: the rows of one strategy, and the facts and columns that panels may use.

Each fact is text for a sentence, or why it is missing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import NamedTuple

from scalestudy.analysis.estimate import Estimate
from scalestudy.analysis.findings import Findings
from scalestudy.analysis.planned_training import PlannedTraining, time_parts
from scalestudy.analysis.price import is_undecided
from scalestudy.analysis.quality import Verdict
from scalestudy.analysis.runs import Key, metric_label
from scalestudy.analysis.scaling_model import nodes_of
from scalestudy.analysis.study_table import Row
from scalestudy.analysis.wording.scaling_model import describe_fit, model_sentences
from scalestudy.config.point import REPEATS
from scalestudy.plugins.engines import package_labels
from scalestudy.report.notes import environments
from scalestudy.report.number_format import (
    NOT_AVAILABLE,
    decimals,
    format_number,
    significant,
    time_unit,
    with_ends,
    with_interval,
)
from scalestudy.store.records import RankRecord, Result
from scalestudy.util import units
from scalestudy.util.errors import UserError
from scalestudy.util.text import count_noun, join_words

AGAIN = "Run the study again with this version."
GPUS = "Run the study on GPUs whose driver reports it (NVML)."
LONGER = "Train for more than one epoch: `epochs` under [train]."
REPEATED = "Run 3 seeds: `seed = [0, 1, 2]` under [sweep]."
BASELINE = "Add 1 to `workers` under [sweep]."
CURVE = (
    "Run at least three numbers of workers, as in `workers = [1, 2, 4]` under [sweep]."
)
MORE = "Request more workers: `--workers N`."


@dataclass(frozen=True)
class RequestOptions:
    """The user's options; None if the study or the panel decides. `reserve` is a share to add."""

    runs: int = 1
    seeds: int | None = None
    strategy: str | None = None
    workers: int | None = None
    charge: float | None = None
    unit: str | None = None
    reserve: float = 0.0


@dataclass(frozen=True)
class ProposalSubject:
    """The part of a study that a proposal presents.

    Attributes:
        rows: Rows of the requested strategy and swept values, in ascending order of workers.
        row: The requested row.
    """

    findings: Findings
    rows: tuple[Row, ...]
    row: Row
    options: RequestOptions

    @property
    def advised(self) -> bool:
        """Whether the study advises the requested row."""
        return self.row.key == self.findings.advice.decision.choice

    @property
    def verdict(self) -> Verdict:
        """The decision's verdict on the quality of the requested row."""
        return (self.findings.advice.decision.verdicts or {}).get(
            self.row.key, self.row.verdict
        )

    @property
    def doubt(self) -> str:
        """The study's advice if the requested row is advised provisionally; "" otherwise."""
        advice = self.findings.advice
        if not self.advised or not advice.decision.provisional:
            return ""
        return " ".join((advice.headline, *advice.decision.doubts))

    @property
    def objection(self) -> str:
        """Why the study does not advise the requested row, as a clause; "" if it does."""
        if self.advised:
            return ""
        decision, verdict = self.findings.advice.decision, self.verdict
        price = (decision.prices or {}).get(self.row.key)
        efficiency = price.efficiency.value if price else None
        if verdict.seems_worse or verdict.failed:
            return f"its quality is or seems worse: {verdict.sentence}"
        if price is None or efficiency is None or is_undecided(price, decision.target):
            return "its time cannot be compared, or is too uncertain"
        if efficiency < decision.target:
            return f"its cost efficiency is {significant(efficiency, 2)}, below {decision.target:g}"
        if decision.choice:
            return f"{decision.choice.label} is faster"
        return "it advises nothing"

    @property
    def planned(self) -> PlannedTraining:
        """The training that is requested."""
        return self.findings.criteria.planned

    def runs(self, row: Row) -> list[Result]:
        """Return the results of a row's runs."""
        runs = self.findings.measures.groups[row.key]
        return [run.result for run in runs if isinstance(run.result, Result)]

    def ranks(self, row: Row) -> list[RankRecord]:
        """Return the rank records of a row's runs."""
        return [
            rank for run in self.findings.measures.groups[row.key] for rank in run.ranks
        ]

    def nodes(self, row: Row) -> int | None:
        """Return the number of nodes of a row's runs; None if it differs or was not recorded."""
        runs = self.findings.measures.groups[row.key]
        counts = {len(run.result.nodes) or nodes_of(run) for run in runs}
        return counts.pop() if len(counts) == 1 else None

    def fixed_seconds(self, row: Row) -> float:
        """Return the seconds of a run that do not grow with its epochs."""
        found = [time_parts(run) for run in self.findings.measures.groups[row.key]]
        parts = [part.fixed for part in found if part is not None]
        return sum(parts) / len(parts) if parts else 0.0

    def hours(self, row: Row) -> float:
        """Return the hours of the planned training from its start to its result, which sites bill."""
        planned = self.findings.measures.planned_seconds
        if not planned.values.get(row.key):
            return (row.wall_seconds.value or 0.0) / 3600
        return (planned.mean(row.key).value or 0.0) / 3600

    def epochs(self, row: Row) -> int:
        """Return the number of epochs of a row's runs."""
        return self.runs(row)[0].epochs


def subject_of(findings: Findings, options: RequestOptions) -> ProposalSubject | None:
    """Return the subject of a proposal; None without a row whose workers had cores or GPUs of their own.

    The row is the one that the user names, else the one that the study advises, else the fastest row with a
    speed-up. In the last case, the page contains no request.

    Raises:
        UserError: If the user names a row that was not measured.
    """
    rows = [row for row in findings.rows if not row.oversubscribed]
    if not rows:
        return None
    strategy, workers = options.strategy, options.workers
    named = []
    for row in rows:
        if strategy in (None, row.strategy) and workers in (None, row.workers):
            named.append(row)
    if not named:
        measured = ", ".join(row.key.label for row in rows)
        received = [strategy] if strategy else []
        if workers:
            received.append(f"{workers} workers")
        raise UserError(
            f"--strategy and --workers of a measured row: {measured}",
            " on ".join(received),
            "Choose one of these, or run the study with the missing row.",
        )
    subject = _requested_row(named, rows, findings.advice.decision.choice)
    series = []
    for row in rows:
        if (row.strategy, row.key.variant) == (subject.strategy, subject.key.variant):
            series.append(row)
    series.sort(key=lambda row: row.workers)
    return ProposalSubject(findings, tuple(series), subject, options)


def _requested_row(named: list[Row], rows: Sequence[Row], choice: Key | None) -> Row:
    """Return the advised row if it is named, else the fastest of those named, of the advised strategy if any is."""
    for row in named:
        if row.key == choice:
            return row
    advised = {row.strategy for row in rows if row.key == choice}
    alike = [row for row in named if row.strategy in advised]

    def speed(row: Row) -> tuple[bool, float]:
        return row.speed.steady.value is not None, row.throughput.value or 0.0

    return max(alike or named, key=speed)


def count_runs(rows: Sequence[Row]) -> str:
    """Return the runs of rows, trainings and timing runs apart: `1 training and 2 timing runs`."""
    trainings, timings = (
        sum(row.trainings for row in rows),
        sum(row.timings for row in rows),
    )
    if not timings:
        return count_noun(trainings, "run")
    of_timings = count_noun(timings, "timing run")
    if trainings:
        return f"{count_noun(trainings, 'training')} and {of_timings}"
    return of_timings


class Missing(NamedTuple):
    """A missing fact: the reason, without a full stop, and how to obtain it."""

    why: str
    remedy: str


Fact = str | Missing

NODES = Missing("the number of nodes is not recorded", AGAIN)


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
        return value if isinstance(value, Estimate) else Estimate(value)

    def cells(self, subject: ProposalSubject) -> list[str]:
        """Return a cell for each row; "" if the value is unknown."""
        estimates = [self.estimate(subject, row) for row in subject.rows]
        digits = self.digits
        if digits is None:
            # Three significant digits for every value; six decimals at most.
            values = [estimate.value for estimate in estimates if estimate.value]
            smallest = min(map(abs, values), default=1.0)
            if smallest >= 0.5:
                digits = decimals(values)
            else:
                digits = min(6, 2 - floor(log10(smallest)))
        cells = (with_interval(estimate, digits) for estimate in estimates)
        return ["" if cell == NOT_AVAILABLE else cell for cell in cells]


def unit_of(column: PanelColumn, subject: ProposalSubject) -> str:
    """Return the unit below a column's title."""
    against = max(row.speed.against for row in subject.rows)
    return column.unit.format(
        time=_time_unit(subject)[0],
        against=f", against {against}" if against > 1 else "",
    )


def _time_unit(subject: ProposalSubject) -> tuple[str, float]:
    return time_unit([row.training_seconds.value or 0.0 for row in subject.rows])


def _rest(subject: ProposalSubject, row: Row) -> float:
    seconds = (row.wall_seconds.value or 0.0) - (row.training_seconds.value or 0.0)
    return seconds / _time_unit(subject)[1]


def _of_gpus(
    name: str, *, by_run: bool
) -> Callable[[ProposalSubject, Row], float | None]:
    """Return a quantity's mean over GPUs, or `by_run` over runs of its sum; None if any GPU lacks it."""

    def value(subject: ProposalSubject, row: Row) -> float | None:
        runs = subject.runs(row)
        values = [getattr(use, name) for run in runs for use in run.gpus]
        if not values or None in values:
            return None
        mean: float = sum(values) / len(runs if by_run else values)
        return mean

    return value


def gib(count: float | None) -> float | None:
    """Convert bytes to GiB."""
    return None if count is None else count / 2**30


COLUMNS: dict[str, PanelColumn] = {
    "workers": PanelColumn("Workers", lambda _, row: row.workers, digits=0),
    "nodes": PanelColumn("Nodes", lambda s, row: s.nodes(row), digits=0),
    "runs": PanelColumn("Runs", lambda _, row: row.runs, digits=0),
    "batch": PanelColumn("Global batch", lambda _, row: row.global_batch, "samples", 0),
    "throughput": PanelColumn(
        "Throughput", lambda _, row: row.throughput, "samples/s", remedy=LONGER
    ),
    "training_time": PanelColumn(
        "Training time",
        lambda s, row: row.training_seconds.scaled(1 / _time_unit(s)[1]),
        "{time}",
    ),
    "rest": PanelColumn("Start-up and rest", _rest, "{time}"),
    "speedup": PanelColumn(
        "Speed-up", lambda _, row: row.speed.steady, "throughput{against}", 2, BASELINE
    ),
    "speedup_training": PanelColumn(
        "Speed-up",
        lambda _, row: row.speed.training,
        "training time{against}",
        2,
        BASELINE,
    ),
    "efficiency": PanelColumn(
        "Efficiency", lambda _, row: row.efficiency, "throughput{against}", 2, BASELINE
    ),
    "efficiency_training": PanelColumn(
        "Efficiency",
        lambda _, row: row.efficiency_training,
        "training time{against}",
        2,
        BASELINE,
    ),
    "device_hours": PanelColumn(
        "Device-hours", lambda _, row: row.costs.device_hours, "a training"
    ),
    "node_hours": PanelColumn(
        "Node-hours",
        lambda s, row: (nodes := s.nodes(row)) and nodes * s.hours(row),
        "a training",
    ),
    "energy_wh": PanelColumn(
        "Energy", lambda _, row: row.costs.watt_hours, "Wh a training", remedy=GPUS
    ),
    "watts": PanelColumn(
        "Power", _of_gpus("watts", by_run=True), "W of GPUs", remedy=GPUS
    ),
    "sm_percent": PanelColumn(
        "SM use", lambda _, row: row.costs.gpu_percent, "%", 0, GPUS
    ),
    "memory_percent": PanelColumn(
        "Memory use", _of_gpus("memory_percent", by_run=False), "% of GPUs", 0, GPUS
    ),
    "gpu_memory": PanelColumn(
        "GPU memory",
        lambda _, row: gib(row.costs.gpu_memory_bytes),
        "peak, GiB",
        remedy=GPUS,
    ),
    "host_memory": PanelColumn(
        "Host memory", lambda _, row: gib(row.costs.peak_memory_bytes), "peak, GiB"
    ),
}
"""Columns by the name that panels use."""


def _quantity(name: str) -> Callable[[ProposalSubject], Fact]:
    """Return the fact of a column for the requested row."""
    column = COLUMNS[name]

    def fact(subject: ProposalSubject) -> Fact:
        if column.remedy is BASELINE and subject.row.is_baseline:
            remedy = MORE if subject.row.workers == 1 else f"{BASELINE} {MORE}"
            return Missing(
                "the requested row is itself the baseline of the speed-up", remedy
            )
        estimate = column.estimate(subject, subject.row)
        if column.digits is None:
            digits = decimals([estimate.value or 0.0])
        else:
            digits = column.digits
        return with_ends(estimate, digits) or Missing(
            f"no value for {column.title}", column.remedy
        )

    return fact


def _beyond_node(subject: ProposalSubject) -> Fact:
    most = max((subject.nodes(row) or 0 for row in subject.rows), default=0)
    if most > 1:
        return count_noun(most, "node")
    if most:
        return Missing(
            "all runs stayed on one node", "Run it on two nodes, through a queue."
        )
    return NODES


def _hardware(subject: ProposalSubject) -> Fact:
    ranks = [rank for run in subject.findings.runs for rank in run.ranks]
    devices = sorted(
        {name for rank in ranks if rank.device_uuids for name in rank.devices}
    )
    text = ", ".join(devices) or dict(environments(subject.findings.runs)).get(
        "Processor", ""
    )
    return text or Missing("the hardware is not recorded", AGAIN)


def _software(subject: ProposalSubject) -> Fact:
    recorded = dict(environments(subject.findings.runs))
    names = dict.fromkeys((*package_labels().values(), "Scalestudy"))
    text = ", ".join(f"{name} {recorded[name]}" for name in names if name in recorded)
    return text or Missing("the versions are not recorded", AGAIN)


def _repeated(subject: ProposalSubject) -> Fact:
    least, most = (
        min(row.runs for row in subject.rows),
        max(row.runs for row in subject.rows),
    )
    if least < 2:
        return Missing("a point was run only once, so its spread is unknown", REPEATED)
    if any(row.timings for row in subject.rows):
        if least < most:
            return f"{least} to {most} repeats, timing runs among them"
        return f"{most} repeats"
    splits = any(run.result.swept.keys() & REPEATS for run in subject.findings.runs)
    repeats = "repeats (seeds and splits)" if splits else "seeds"
    return f"{most} {repeats}" if least == most else f"{least} to {most} {repeats}"


def _same_work(subject: ProposalSubject) -> Fact:
    samples = {row.samples_processed for row in subject.rows}
    if len(samples) > 1 or None in samples:
        return Missing(
            "runs processed different numbers of samples",
            "Keep data and epochs the same.",
        )
    return f"{samples.pop():,}"


def _quality(subject: ProposalSubject) -> Fact:
    text, metric = (
        with_ends(subject.row.quality, subject.row.digits),
        metric_label(subject.row.metric),
    )
    other = subject.row.quality_of
    if text and other:
        return f"{metric} {text} (measured on {other.label}, whose updates are equal)"
    if text:
        return f"{metric} {text}"
    return Missing(f"a run ended without a finite {metric}", REPEATED)


def _verdict(subject: ProposalSubject) -> Fact:
    if subject.verdict.kind == "reference":
        reference = None
    else:
        reference = subject.verdict.reference
    return subject.verdict.sentence + (
        f" (against {reference.label})" if reference else ""
    )


def _epoch_time(subject: ProposalSubject) -> Fact:
    seconds = (subject.row.training_seconds.value or 0.0) / subject.epochs(subject.row)
    return f"{format_number(seconds, decimals([seconds]))} s"


def _limits(subject: ProposalSubject) -> Fact:
    keys = {row.key for row in subject.rows}
    model = next(
        (model for model in subject.findings.models if model.series.key in keys), None
    )
    if model and model.fit:
        return " ".join(
            (describe_fit(model, model.series.key.strategy), *model_sentences(model))
        )
    return Missing(
        (model.reason if model else "") or "no scaling model can be fitted", CURVE
    )


def _batch_rule(subject: ProposalSubject) -> Fact:
    sizes = {row.global_batch for row in subject.rows}
    shares = {subject.runs(row)[0].per_worker_batch for row in subject.rows}
    if len(sizes) == 1 and None not in sizes:
        return "the same global batch, so that every update is the same"
    if len(shares) == 1 and None not in shares:
        return "the same batch on each worker, so that the global batch grows with the workers"
    return Missing(
        "neither the global batch nor the per-worker batch is constant", CURVE
    )


FACTS: dict[str, Callable[[ProposalSubject], Fact]] = {
    name: _quantity(name) for name in COLUMNS
} | {
    "strategy": lambda s: (
        s.row.strategy + (f" ({s.row.key.details})" if s.row.key.details else "")
    ),
    "workers": lambda s: count_noun(s.row.workers, "worker"),
    "counts": lambda s: join_words([str(row.workers) for row in s.rows]),
    "nodes": lambda s: (
        count_noun(nodes, "node") if (nodes := s.nodes(s.row)) else NODES
    ),
    "beyond_node": _beyond_node,
    "hardware": _hardware,
    "software": _software,
    "runs": lambda s: count_runs(s.rows),
    "repeated": _repeated,
    "samples": lambda s: f"{s.runs(s.row)[0].training_samples:,}",
    "same_work": _same_work,
    "epochs": lambda s: count_noun(s.epochs(s.row), "epoch"),
    "parameters": lambda s: f"{s.runs(s.row)[0].parameters:,}",
    "precision": lambda s: (
        s.runs(s.row)[0].precision or Missing("the precision is not recorded", AGAIN)
    ),
    "quality": _quality,
    "verdict": _verdict,
    "training_time": lambda s: units.duration(s.row.training_seconds.value or 0.0),
    "epoch_time": _epoch_time,
    "start_up": lambda s: units.duration(s.fixed_seconds(s.row)),
    "against": lambda s: count_noun(s.row.speed.against, "worker"),
    "limits": _limits,
    "batch_rule": _batch_rule,
}
"""Facts by the name that panels use."""
