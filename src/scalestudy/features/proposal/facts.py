"""The facts that a panel's sentences may name."""

from collections.abc import Callable
from functools import partial

from scalestudy.analysis.runs import metric_label
from scalestudy.analysis.scaling.words import fit_words, model_sentences
from scalestudy.analysis.statistics import Estimate
from scalestudy.features.proposal.columns import (
    AGAIN,
    BASELINE,
    COLUMNS,
    CURVE,
    GPUS,
    REPEATED,
    Missing,
)
from scalestudy.features.proposal.subject import ProposalSubject, counted, listed, with_ends
from scalestudy.report.environment import environments
from scalestudy.report.format import decimals, number
from scalestudy.util import units

Fact = str | Missing
"""The words, or why there are none."""
_MORE = "Ask for more: `--workers N`."
_TWO_NODES = "Run it on two nodes, through a queue."


def _quantity(column: str, subject: ProposalSubject) -> Fact:
    """What stands in a column for the row that is requested."""
    value = COLUMNS[column].value(subject, subject.row)
    estimate = value if isinstance(value, Estimate) else Estimate(value)
    digits = COLUMNS[column].digits
    text = with_ends(estimate, decimals([estimate.value or 0.0]) if digits is None else digits)
    return text or Missing(f"nothing is known for {COLUMNS[column].name}", COLUMNS[column].remedy)


def _nodes(subject: ProposalSubject) -> Fact:
    nodes = subject.nodes(subject.row)
    return counted(nodes, "node") if nodes else Missing("on how many nodes it ran is not recorded", AGAIN)


def _beyond_node(subject: ProposalSubject) -> Fact:
    known = [nodes for row in subject.rows if (nodes := subject.nodes(row)) is not None]
    if not known:
        return Missing("on how many nodes it ran is not recorded", AGAIN)
    return (
        counted(max(known), "node") if max(known) > 1 else Missing("all runs stayed on one node", _TWO_NODES)
    )


def _hardware(subject: ProposalSubject) -> Fact:
    ranks = [rank for run in subject.findings.runs for rank in run.ranks]
    devices = sorted({name for rank in ranks if rank.device_uuids for name in rank.devices})
    text = ", ".join(devices) or dict(environments(subject.findings.runs)).get("Processor", "")
    return text or Missing("the hardware is not recorded", AGAIN)


def _software(subject: ProposalSubject) -> Fact:
    recorded = dict(environments(subject.findings.runs))
    names = [name for name in ("TensorFlow", "Keras", "Horovod", "Scalestudy") if name in recorded]
    text = ", ".join(f"{name} {recorded[name]}" for name in names)
    return text or Missing("the versions are not recorded", AGAIN)


def _repeated(subject: ProposalSubject) -> Fact:
    least, most = min(row.runs for row in subject.rows), max(row.runs for row in subject.rows)
    if least < 2:
        return Missing("a point was run once, so nothing is known of its spread", REPEATED)
    return counted(most, "seed") if least == most else f"{least} to {most} seeds"


def _same_work(subject: ProposalSubject) -> Fact:
    samples = {row.samples_processed for row in subject.rows}
    if len(samples) > 1 or None in samples:
        return Missing("runs processed different numbers of samples", "Keep data and epochs the same.")
    return f"{samples.pop():,}"


def _quality(subject: ProposalSubject) -> Fact:
    text, metric = with_ends(subject.row.quality, subject.row.digits), metric_label(subject.row.metric)
    return f"{metric} {text}" if text else Missing(f"a run ended without a finite {metric}", REPEATED)


def _verdict(subject: ProposalSubject) -> Fact:
    verdict = subject.verdict
    if verdict.kind in ("no-worse", "worse", "reference"):
        return verdict.sentence
    return Missing(f"its quality: {verdict.sentence}", f"{BASELINE} {REPEATED}")


def _epoch_time(subject: ProposalSubject) -> Fact:
    seconds = (subject.row.training_seconds.value or 0.0) / subject.epochs(subject.row)
    return f"{number(seconds, decimals([seconds]))} s"


def _against_one(subject: ProposalSubject, value: Estimate, reason: str | None) -> Fact:
    if subject.row.workers == 1:
        return Missing("what is asked for is one worker", _MORE)
    if subject.row.speed.against != 1:
        return Missing("no run on one worker to compare with", BASELINE)
    return with_ends(value) or Missing(reason or "no speed-up could be computed", BASELINE)


def _against_smallest(subject: ProposalSubject, *, efficiency: bool) -> Fact:
    if len(subject.rows) < 2:
        return Missing("only one number of workers was measured", CURVE)
    if subject.row is subject.smallest:
        return Missing("what is asked for is the smallest size itself", _MORE)
    faster = subject.times_faster(subject.row, subject.smallest)
    share = subject.smallest.workers / subject.row.workers if efficiency else 1.0
    return with_ends(faster.scaled(share)) or Missing("the two cannot be compared", REPEATED)


def _limits(subject: ProposalSubject) -> Fact:
    keys = {row.key for row in subject.rows}
    model = next((model for model in subject.findings.models if model.series.key in keys), None)
    if model and model.fit:
        return " ".join((fit_words(model, model.series.key.strategy), *model_sentences(model)))
    return Missing((model.reason if model else "") or "no scaling model can be fitted", CURVE)


def _strong_efficiency(subject: ProposalSubject) -> Fact:
    text, row = with_ends(subject.row.efficiency_training), subject.row
    if not isinstance(_same_work(subject), Missing) and text and not row.is_baseline:
        return text + _relative_to(row.speed.against)
    return Missing(row.speed.training_reason or "no two numbers of workers did the same work", CURVE)


def _relative_to(workers: int) -> str:
    return f" relative to {workers} workers" if workers > 1 else ""


def _batch_rule(subject: ProposalSubject) -> Fact:
    sizes = {row.global_batch for row in subject.rows}
    shares = {subject.runs(row)[0].per_worker_batch for row in subject.rows}
    if len(sizes) == 1 and None not in sizes:
        return "the same batch over all workers together, so that every update is the same"
    if len(shares) == 1 and None not in shares:
        return "the same batch on each worker, so that an update grows with them"
    return Missing("the runs keep neither the global batch nor that of a worker", CURVE)


def _lost_share(subject: ProposalSubject) -> Fact:
    if subject.work.unknown:
        runs = counted(subject.work.unknown, "run")
        return Missing(f"{runs} ended without a result, and without a sign of when", AGAIN)
    return f"{100 * (subject.work.share or 0.0):.1f} %"


FACTS: dict[str, Callable[[ProposalSubject], Fact]] = {
    "strategy": lambda s: s.row.strategy + (f" ({s.row.key.details})" if s.row.key.details else ""),
    "workers": lambda s: counted(s.row.workers, "worker"),
    "counts": lambda s: listed([str(row.workers) for row in s.rows]),
    "nodes": _nodes,
    "beyond_node": _beyond_node,
    "hardware": _hardware,
    "software": _software,
    "runs": lambda s: counted(sum(row.runs for row in s.rows), "run"),
    "repeated": _repeated,
    "samples": lambda s: f"{s.runs(s.row)[0].training_samples:,}",
    "same_work": _same_work,
    "epochs": lambda s: counted(s.epochs(s.row), "epoch"),
    "parameters": lambda s: f"{s.runs(s.row)[0].parameters:,}",
    "precision": lambda s: s.runs(s.row)[0].precision or Missing("the arithmetic is not recorded", AGAIN),
    "quality": _quality,
    "verdict": _verdict,
    "training_time": lambda s: units.duration(s.row.training_seconds.value or 0.0),
    "epoch_time": _epoch_time,
    "start_up": lambda s: units.duration(s.fixed_seconds(s.row)),
    "smallest": lambda s: counted(s.smallest.workers, "worker"),
    "speedup": lambda s: _against_one(s, s.row.speed.steady, s.row.speed.reason),
    "efficiency": lambda s: _against_one(s, s.row.efficiency, s.row.speed.reason),
    "speedup_training": lambda s: _against_one(s, s.row.speed.training, s.row.speed.training_reason),
    "speedup_smallest": lambda s: _against_smallest(s, efficiency=False),
    "efficiency_smallest": lambda s: _against_smallest(s, efficiency=True),
    "limits": _limits,
    "strong_efficiency": _strong_efficiency,
    "batch_rule": _batch_rule,
    **{
        name: partial(_quantity, name)
        for name in ("throughput", "energy_wh", "watts", "sm_percent", "memory_percent", "gpu_memory")
    },
    "energy_of": lambda s: s.row.costs.energy_of or Missing("no energy was recorded", GPUS),
    "lost_share": _lost_share,
    "lost_runs": lambda s: counted(s.work.attempts, "run"),
}
"""By the name that panel files use."""
