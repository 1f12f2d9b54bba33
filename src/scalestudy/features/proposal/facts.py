"""Facts of a proposal, by the name that panels use: text for a sentence, or why it is missing."""

from collections.abc import Callable

from scalestudy.analysis.runs import metric_label
from scalestudy.analysis.wording.scaling_model import describe_fit, model_sentences
from scalestudy.config.point import REPEATS
from scalestudy.features.proposal.missing import (
    AGAIN,
    BASELINE,
    CURVE,
    MORE,
    REPEATED,
    Missing,
)
from scalestudy.features.proposal.subject import ProposalSubject, count_runs
from scalestudy.features.proposal.table_columns import COLUMNS
from scalestudy.plugins.engines import package_labels
from scalestudy.report.notes import environments
from scalestudy.report.number_format import decimals, format_number, with_ends
from scalestudy.util import units
from scalestudy.util.text import count_noun, join_words

Fact = str | Missing

NODES = Missing("the number of nodes is not recorded", AGAIN)


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
